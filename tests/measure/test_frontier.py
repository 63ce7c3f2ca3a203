from collections.abc import Iterable, Iterator, Mapping, Sequence

from tensorplay.errors import LaunchError
from tensorplay.measure.budget import Deadline
from tensorplay.measure.effects import Effects
from tensorplay.measure.frontier import OPEN_WITHIN, Frontier, Point
from tensorplay.measure.traits import traits_of
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.typing import Pending


def never() -> bool:
    return False


def point(kernel: str, score: float) -> Point[str]:
    return Point(kernel, kernel, traits_of(kernel), score)


def frontier_of(
    neighbours: Mapping[str, Sequence[str]], known: Iterable[str] = (), effects: Effects | None = None
) -> Frontier[str]:
    deadline = Deadline(ManualClock())
    return Frontier(lambda at: neighbours.get(at, ()), str, effects or Effects(), known, deadline)


def taken(frontier: Frontier[str], size: int = 99) -> list[str]:
    return [waiting.kernel for waiting in frontier.take(size, never)]


def test_neighbours_are_given_out_once_and_nothing_that_is_known() -> None:
    frontier = frontier_of({"k_t1": ["k_t2", "k_t3"], "k_t2": ["k_t1", "k_t3", "k_t4"]}, known=["k_t1"])
    frontier.open(point("k_t1", 0.0))
    assert taken(frontier) == ["k_t2", "k_t3"]
    frontier.open(point("k_t2", 0.0))
    assert taken(frontier) == ["k_t4"]
    assert taken(frontier) == []


def test_the_order_of_the_neighbours_is_kept_where_nothing_is_known() -> None:
    order = ["k_t9", "k_t2", "k_t7", "k_t3"]
    frontier = frontier_of({"k_t1": order})
    frontier.open(point("k_t1", 0.0))
    assert taken(frontier) == order


def test_what_was_fast_before_comes_first() -> None:
    effects = Effects()
    for _ in range(5):
        effects.learn(traits_of("k_t1"), traits_of("k_t7"), -0.3)
        effects.learn(traits_of("k_t1"), traits_of("k_t2"), 0.3)
    frontier = frontier_of({"k_t1": ["k_t2", "k_t3", "k_t7"]}, effects=effects)
    frontier.open(point("k_t1", 0.0))
    assert taken(frontier) == ["k_t7", "k_t3", "k_t2"]


def test_the_neighbours_of_the_faster_come_first() -> None:
    frontier = frontier_of({"k_t1": ["k_t2"], "k_u1": ["k_u2"]})
    frontier.open(point("k_t1", 0.1))
    frontier.open(point("k_u1", -0.1))
    assert taken(frontier) == ["k_u2", "k_t2"]


def test_whoever_is_far_behind_the_best_is_not_asked() -> None:
    frontier = frontier_of({"k_t1": ["k_t2"], "k_u1": ["k_u2"], "k_v1": ["k_v2"]})
    frontier.open(point("k_u1", 0.0))
    frontier.open(point("k_t1", 0.0))
    frontier.open(point("k_v1", -OPEN_WITHIN - 0.01))
    assert taken(frontier) == ["k_v2"]


def test_a_good_point_is_not_held_up_by_all_neighbours_of_a_slightly_better_one() -> None:
    asked = []

    def neighbours(at: str) -> Iterator[str]:
        for number in range(500):
            asked.append(at)
            yield f"{at}_n{number}"

    frontier = Frontier(neighbours, str, Effects(), [], Deadline(ManualClock()))
    frontier.open(point("best", 0.0))
    frontier.open(point("next", 0.01))
    for _ in range(5):
        frontier.take(12, never)
    assert 0 < asked.count("next") < asked.count("best") < 200


def test_what_comes_out_of_memory_is_first_of_all() -> None:
    frontier = frontier_of({"k_t1": ["k_t2"]})
    frontier.open(point("k_t1", 0.0))
    assert frontier.offer("k_t9")
    assert not frontier.offer("k_t9")
    assert taken(frontier) == ["k_t9", "k_t2"]


def test_a_library_that_no_longer_answers_ends_the_neighbours_of_that_point_alone() -> None:
    def neighbours(at: str) -> Iterator[str]:
        yield f"{at}_a1"
        if at == "broken":
            raise LaunchError("no answer")
        yield f"{at}_a2"

    frontier = Frontier(neighbours, str, Effects(), [], Deadline(ManualClock()))
    frontier.open(point("broken", 0.0))
    frontier.open(point("fine", 0.1))
    assert taken(frontier) == ["broken_a1", "fine_a1", "fine_a2"]


def test_asking_ends_when_time_is_over() -> None:
    asked: list[int] = []

    def neighbours(_: str) -> Iterator[str]:
        for number in range(100):
            asked.append(number)
            yield f"k_n{number}"

    frontier = Frontier(neighbours, str, Effects(), [], Deadline(ManualClock()))
    frontier.open(point("k", 0.0))
    assert len(frontier.take(12, lambda: len(asked) >= 3)) == 3
    assert len(asked) == 3


def test_nobody_is_asked_once_time_is_over() -> None:
    asked: list[str] = []

    def neighbours(at: str) -> Iterator[str]:
        asked.append(at)
        yield f"{at}_n1"

    frontier = Frontier(neighbours, str, Effects(), [], Deadline(ManualClock()))
    frontier.open(point("k", 0.0))
    assert frontier.take(12, lambda: True) == []
    assert not asked


def test_neighbours_that_have_to_be_compiled_do_not_keep_the_others_waiting() -> None:
    clock = ManualClock()

    def neighbours(at: str) -> Iterator[str]:
        for number in range(50):
            if at == "slow":
                clock.advance(0.1)
            yield f"{at}_n{number}"

    frontier = Frontier(neighbours, str, Effects(), [], Deadline(clock))
    frontier.open(point("slow", 0.0))
    frontier.open(point("quick", 0.001))
    found = [waiting.kernel for waiting in frontier.take(12, never)]
    assert sum(kernel.startswith("slow") for kernel in found) == 1
    assert len(found) == 12


def test_spreading_asks_those_that_were_not_asked_yet() -> None:
    neighbours = {"best": [f"best_n{number}" for number in range(300)], "far": ["far_n1"]}
    frontier = frontier_of(neighbours)
    frontier.open(point("best", 0.0))
    frontier.open(point("far", OPEN_WITHIN - 0.01))
    for _ in range(3):
        assert "far_n1" not in taken(frontier, 50)
    frontier.spread()
    assert "far_n1" in taken(frontier, 200)


class Workshop:
    """Neighbours that are made one at a time; whoever waits gets the next one made."""

    def __init__(self, *kernels: str) -> None:
        self._to_make = list(kernels)
        self._made: list[str] = []
        self.waits = 0
        self.given: list[float] = []

    def make_one(self) -> None:
        self._made.append(self._to_make.pop(0))

    def wait(self, seconds: float) -> None:
        self.waits += 1
        self.given.append(seconds)
        self.make_one()

    def __iter__(self) -> Iterator[str | Pending]:
        while self._to_make or self._made:
            yield self._made.pop(0) if self._made else Pending(self.wait)


def frontier_with(
    workshop: Workshop, others: Mapping[str, Sequence[str]], seconds: float | None = None
) -> Frontier[str]:
    def neighbours(at: str) -> Iterable[str | Pending]:
        return workshop if at == "slow_1" else others.get(at, ())

    return Frontier(neighbours, str, Effects(), [], Deadline(ManualClock(), seconds))


def test_who_is_still_being_made_holds_up_nobody() -> None:
    workshop = Workshop("slow_2", "slow_3")
    frontier = frontier_with(workshop, {"k_t1": [f"k_t{number}" for number in range(2, 60)]})
    frontier.open(point("slow_1", -0.1))
    frontier.open(point("k_t1", 0.0))
    first = taken(frontier, 4)
    assert len(first) == 4 and not workshop.waits
    workshop.make_one()
    # It comes of a better point, and so before what was waiting.
    assert taken(frontier, 4)[0] == "slow_2"
    assert not workshop.waits


def test_where_all_are_still_being_made_one_is_waited_for() -> None:
    workshop = Workshop("slow_2", "slow_3")
    frontier = frontier_with(workshop, {})
    frontier.open(point("slow_1", 0.0))
    assert taken(frontier) == ["slow_2"]
    assert workshop.waits == 1
    assert taken(frontier) == ["slow_3"]
    assert taken(frontier) == []
    assert workshop.waits == 2


def test_nobody_waits_for_one_that_is_being_made_once_time_is_over() -> None:
    workshop = Workshop("slow_2")
    frontier = frontier_with(workshop, {})
    frontier.open(point("slow_1", 0.0))
    assert frontier.take(4, lambda: True) == []
    assert workshop.waits == 0


def test_who_waits_is_told_how_much_time_is_left() -> None:
    workshop = Workshop("slow_2")
    frontier = frontier_with(workshop, {}, seconds=0.25)
    frontier.open(point("slow_1", 0.0))
    assert taken(frontier) == ["slow_2"]
    assert workshop.given == [0.25]


def test_time_that_is_over_after_a_wait_lets_nobody_be_asked() -> None:
    workshop = Workshop("slow_2", "slow_3")
    frontier = frontier_with(workshop, {})
    frontier.open(point("slow_1", 0.0))
    assert frontier.take(4, lambda: workshop.waits > 0) == []


def test_a_point_whose_neighbours_are_being_made_is_spread_over_like_the_others() -> None:
    workshop = Workshop("slow_2")
    frontier = frontier_with(workshop, {"k_t1": ["k_t2"]})
    frontier.open(point("slow_1", 0.0))
    frontier.open(point("k_t1", 0.1))
    assert taken(frontier, 1) == ["k_t2"]
    frontier.spread()
    workshop.make_one()
    assert taken(frontier, 1) == ["slow_2"]


def test_a_point_whose_neighbours_are_being_made_is_left_once_it_is_far_behind() -> None:
    workshop = Workshop("slow_2")
    frontier = frontier_with(workshop, {"k_t1": ["k_t2"], "k_v1": ["k_v2"]})
    frontier.open(point("slow_1", 0.0))
    frontier.open(point("k_t1", 0.1))
    assert taken(frontier, 1) == ["k_t2"]
    frontier.open(point("k_v1", -OPEN_WITHIN - 0.01))
    workshop.make_one()
    assert taken(frontier) == ["k_v2"]
