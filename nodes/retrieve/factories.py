"""What a setting's module:factory makes: the parts that whoever runs this brings along."""

import importlib
from collections.abc import Callable

from nodes.retrieve.documents import KnowledgeError

Factory = Callable[..., object]


def made_by(
    setting: str, spec: str, remedy: str, call: Callable[[Factory], object] = lambda make: make()
) -> object:
    """What `call` makes of the factory, or the thing itself where it is none.

    Raises KnowledgeError in one line, which ends with the remedy.
    """
    module_name, _, factory_name = spec.partition(":")
    try:
        factory = getattr(importlib.import_module(module_name), factory_name)
        return call(factory) if callable(factory) else factory
    except (ImportError, AttributeError, ValueError) as error:
        raise KnowledgeError(f"{setting}={spec} cannot be loaded ({error}). {remedy}") from error
    except Exception as error:  # whatever that module does, it is one line here
        raise KnowledgeError(f"{setting}={spec} failed ({type(error).__name__}). {remedy}") from error
