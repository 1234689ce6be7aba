"""kube-scheduler's configuration files, translated into SchedulerConfigurations."""

from eclectus.config.upstream.notes import Note
from eclectus.config.upstream.translation import Translation, translate

__all__ = ["Note", "Translation", "translate"]
