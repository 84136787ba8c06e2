from concurrent.futures import ThreadPoolExecutor

from app.engines.result_cache import Memo


def test_the_least_recently_used_result_is_evicted_first() -> None:
    memo = Memo(size_max=2)
    memo.put("a", ((1,),))
    memo.put("b", ((2,),))
    assert memo.get("a") == ((1,),)
    memo.put("c", ((3,),))
    assert (memo.get("a"), memo.get("b"), memo.get("c")) == (((1,),), None, ((3,),))


def test_the_number_of_cached_integers_is_bounded() -> None:
    memo = Memo(size_max=100, integers_max=10)
    for key in range(5):
        memo.put(key, ((1, 2, 3, 4),))
    assert len(memo) == 2
    memo.put("too large", (tuple(range(11)),))
    assert memo.get("too large") is None
    assert len(memo) == 2
    memo.put(4, ((1, 2, 3, 4),))  # storing it again takes no more space
    assert len(memo) == 2


def test_a_cache_of_size_zero_keeps_nothing() -> None:
    memo = Memo(size_max=0)
    memo.put("a", ((1,),))
    assert memo.get("a") is None


def test_many_threads_may_use_the_cache_at_once() -> None:
    memo = Memo(size_max=50, integers_max=200)

    def work(start: int) -> bool:
        for i in range(2000):
            key = (start * 31 + i) % 80
            memo.put(key, ((key, key, key),))
            found = memo.get(key)
            if found is not None and found != ((key, key, key),):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert len(memo) <= 50
