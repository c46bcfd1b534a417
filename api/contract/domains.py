"""The domains that ship: the consultation, which is the default, and start-up subsidies."""

from api.contract.consultation import CONSULTATION
from api.contract.states import StateRegistry
from api.contract.subsidy import STARTUP_SUBSIDY

SHIPPED = StateRegistry(CONSULTATION, STARTUP_SUBSIDY)
