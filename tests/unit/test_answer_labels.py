"""Citation labels as a reader sees them: from C1 on, in the order of use, however a model writes them."""

import pytest

from nodes.answer.labels import Numbering, numbers_in


def test_labels_count_in_the_order_of_their_first_use() -> None:
    numbering = Numbering()
    assert numbering.renumbered("甲[C3]。") == "甲[C1]。"
    assert numbering.renumbered("乙[C1]，丙[C3]。") == "乙[C2]，丙[C1]。"
    assert numbering.order == (3, 1)


def test_labels_go_on_from_those_before_them() -> None:
    numbering = Numbering(3)
    assert numbering.renumbered("甲[C2][C1]") == "甲[C3][C4]"
    assert numbering.order == (2, 1)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[C5, C2]", "[C1][C2]"),
        ("[C2-C4]", "[C1][C2][C3]"),
        ("［Ｃ7］", "[C1]"),
        ("[ c7 ]", "[C1]"),
        ("[C7、C7]", "[C1]"),
        ("无", "无"),
        ("数组[7]", "数组[7]"),
    ],
)
def test_every_way_of_writing_a_label(written: str, shown: str) -> None:
    assert Numbering().renumbered(written) == shown


def test_a_range_too_long_names_no_label() -> None:
    assert numbers_in("[C1-C900]") == list(range(1, 66))
    assert numbers_in("[C9-C1]") == [0]
