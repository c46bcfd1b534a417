"""The Context Contract: a backend that owns its conversations calls this service for one turn."""
