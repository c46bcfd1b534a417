"""The scope that lets a caller supply knowledge of its own."""

SCOPE = "contract"
