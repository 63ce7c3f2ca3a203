"""Those who listen to the event stream on one loop: woken together, and only when there is something for them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Audience", "Client"]

# Who heard nothing since the last time hears that there is nothing: twice this is the longest silence.
_SILENCE_S = 7.5


@dataclass(eq=False, slots=True)
class Client:
    """Who listens to some kinds of events, None for all, and has seen those up to a number.

    `is_silent` once it was told nothing for a while.
    """

    kinds: frozenset[str] | None
    seen: int
    is_silent: bool = False
    _is_quiet: bool = False
    _wake: asyncio.Future[None] | None = None

    async def woken(self) -> None:
        """Return when it is woken: nothing runs for it until then."""
        self._wake = asyncio.get_running_loop().create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    def wake(self) -> None:
        """Let it go on; one whose connection takes nothing does not wait, and looks by itself later."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def told(self) -> None:
        """Note that it was told something."""
        self._is_quiet = self.is_silent = False

    def count_silence(self) -> None:
        """Wake it when it was told nothing since the time before last."""
        self.is_silent, self._is_quiet = self._is_quiet, True
        if self.is_silent:
            self.wake()


@dataclass(eq=False, slots=True)
class Audience:
    """The clients of one loop, all of whose methods are called on it.

    Attributes
    ----------
    number : int
        They are told what happened up to this.
    is_due : bool
        Whether they are about to look, so that nobody need wake them.
    told : dict
        What they were told last, by what they had seen before and the kinds that they want.
    """

    loop: asyncio.AbstractEventLoop
    number: int
    is_due: bool = False
    clients: set[Client] = field(default_factory=set)
    told: dict[tuple[int, frozenset[str] | None], bytes] = field(default_factory=dict)
    _look: asyncio.TimerHandle | None = None
    _ping: asyncio.TimerHandle | None = None

    def join(self, client: Client) -> None:
        """Add one."""
        if self._ping is None:
            self._ping = self.loop.call_later(_SILENCE_S, self._count_silence)
        self.clients.add(client)

    def leave(self, client: Client) -> None:
        """Take one away; nothing is left on the loop behind the last."""
        self.clients.discard(client)
        if not self.clients:
            for timer in (self._look, self._ping):
                if timer is not None:
                    timer.cancel()
            self._look = self._ping = None

    def wake(self) -> None:
        """Let all go on."""
        for client in self.clients:
            client.wake()

    def look_after(self, pause_s: float, look: Callable[["Audience"], None]) -> None:
        """Call back after a pause, if there is somebody left then."""
        self._look = self.loop.call_later(pause_s, look, self)

    def _count_silence(self) -> None:
        self._ping = self.loop.call_later(_SILENCE_S, self._count_silence)
        for client in self.clients:
            client.count_silence()
