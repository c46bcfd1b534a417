"""Other names that senders use for the slots of a consultation state, by domain. The only such table."""

from collections.abc import Mapping

Aliases = Mapping[str, str]  # other name -> the slot's own name

CONSULTATION: Aliases = {
    "pain": "pain_level",
    "pain_score": "pain_level",
    "swollen": "swelling",
    "injury": "trauma",
    "body_part": "body_parts",
    "symptom": "symptoms",
    "aggravating_factor": "aggravating_factors",
}
STARTUP_SUBSIDY: Aliases = {
    "registered": "registered_for",
    "insurance": "social_insurance",
    "received": "received_before",
}
