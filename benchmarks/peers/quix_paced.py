"""Quix over Kafka: ``.peers/quix/bin/python -m benchmarks.peers.quix_paced SERVERS TOPIC ROWS``.

See ``studies.brokered``.  Windows are by key, and closed by the largest time of their partition.  Nothing is
recorded: no changelog, no commit.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from datetime import timedelta
from typing import Any

from quixstreams import Application
from quixstreams.dataframe.windows import Count, Sum
from quixstreams.models.topics import Topic, TopicAdmin, TopicConfig, TopicManager

from benchmarks.peers.pace import FETCH_MS, SLACK, WINDOW, last_end

__all__ = ["answers"]

STEP = timedelta(milliseconds=1)
EPOCH = 1_577_836_800_000  # ms; it has no windows before 1970


class _Known(TopicManager):
    """The settings of the topic, for the broker of librdkafka does not tell them."""

    def _fetch_topic(self, topic: Topic) -> Topic:
        found = Topic(name=topic.name)
        kept = {"retention.ms": "604800000", "retention.bytes": "-1", "cleanup.policy": "delete"}
        found.broker_config = TopicConfig(num_partitions=1, replication_factor=1, extra_config=kept)
        return found


def answers(servers: str, topic: str, rows: int) -> dict[str, Any]:
    """Return when the first result of each window came out, and CPU microseconds a row."""
    found: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        app = Application(
            servers,
            consumer_group="quix",
            auto_offset_reset="earliest",
            state_dir=folder,
            use_changelog_topics=False,
            auto_create_topics=False,
            topic_manager=_Known(TopicAdmin(servers), "quix"),
            commit_interval=3600,
            consumer_extra_config={"fetch.wait.max.ms": FETCH_MS},
            loglevel="ERROR",
        )

        def answered(result: dict[str, int]) -> None:
            end = result["end"] - EPOCH
            found.setdefault(end, time.perf_counter())
            if end == last_end(rows):
                app.stop()

        given = app.topic(topic, timestamp_extractor=lambda value, *_: EPOCH + value["ts"])
        windows = app.dataframe(given).tumbling_window(WINDOW * STEP, grace_ms=SLACK * STEP)
        windows.agg(n=Count(), total=Sum("v")).final(closing_strategy="partition").update(answered)
        began = time.process_time()
        app.run()
        cpu_s = time.process_time() - began
    return {"answered_s": found, "cpu_us": round(1e6 * cpu_s / rows, 1)}


if __name__ == "__main__":
    print(json.dumps(answers(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
