"""Request records copied from Redis to SQL before they expire."""
