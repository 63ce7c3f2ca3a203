from tensorplay.measure.search_memory import MOST_KERNELS, MOST_KINDS, SearchMemory
from tensorplay.measure.traits import traits_of


def test_a_kind_keeps_what_it_learnt_and_others_know_nothing_of_it() -> None:
    memory = SearchMemory()
    memory.of("a").remember(["k1"])
    memory.of("a").effects.learn(traits_of("k_t1"), traits_of("k_t2"), 0.1)
    assert memory.of("a").kernels == ["k1"]
    assert len(memory.of("a").effects) == 1
    assert (memory.of("b").kernels, len(memory.of("b").effects)) == ([], 0)


def test_kernels_come_latest_and_best_first_and_once() -> None:
    knowledge = SearchMemory().of("a")
    knowledge.remember(["old best", "old second"])
    knowledge.remember(["new best", "old second"])
    assert knowledge.kernels == ["new best", "old second", "old best"]


def test_both_are_bounded_and_the_oldest_go() -> None:
    memory = SearchMemory()
    for kind in range(MOST_KINDS + 5):
        memory.of(kind).remember([str(kind)])
        memory.of(0)
    assert len(memory) == MOST_KINDS
    assert memory.of(0).kernels == ["0"]
    assert memory.of(1).kernels == []
    knowledge = memory.of("many")
    for number in range(MOST_KERNELS + 5):
        knowledge.remember([str(number)])
    assert len(knowledge.kernels) == MOST_KERNELS
    assert "0" not in knowledge.kernels
