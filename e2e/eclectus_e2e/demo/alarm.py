"""How soon a change of speed should be found, from settings alone. Pure."""

from math import floor, log

from eclectus.maths.cusum import CLIP
from eclectus.policies.rosella import RosellaLearn

PREDICTION_FACTOR = 1.5  # times what is predicted


def samples_until_alarm(learn: RosellaLearn, kinds: int) -> int:
    """After a shift of more than two spreads, of a node's work of so many kinds.

    Each sample then adds 2 - slack to the CUSUM, which must come to more than its threshold; that is
    ln(kinds) higher for all of a node's work.
    """
    return floor((learn.alarm_threshold + log(kinds)) / (CLIP - learn.alarm_slack)) + 1
