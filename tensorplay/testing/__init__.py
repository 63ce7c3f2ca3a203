"""What people who build on TensorPlay test with: conformance suites, and doubles that say what they are."""

from tensorplay.testing.backend_suite import BackendSuite
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_backend import ScriptedBackend, scripted_kernel
from tensorplay.testing.scripted_space import ScriptedSpace
from tensorplay.testing.scripted_timer import ScriptedTimer

__all__ = ["BackendSuite", "ManualClock", "ScriptedBackend", "ScriptedSpace", "ScriptedTimer", "scripted_kernel"]
