"""The story, from the second act on: a catalog serves and Spark is connected."""

from __future__ import annotations

from tidegate.demo.contest import let_them_race
from tidegate.demo.deliver import make_deliveries
from tidegate.demo.knowledge import show_knowledge
from tidegate.demo.look_back import look_back
from tidegate.demo.place import DemoRefused
from tidegate.demo.refine import take_in
from tidegate.demo.scene import Scene
from tidegate.demo.shop import SCHEMA
from tidegate.demo.summary import sum_up


def enter(scene: Scene) -> None:
    """Raises DemoRefused, and changes nothing, where there are tables that the demo has not made."""
    place = scene.place
    exists = scene.spark.catalog.databaseExists(SCHEMA)
    if exists and not place.used:
        raise DemoRefused(f"The catalog in {place.home} has a schema {SCHEMA} of its own: give another --home.")
    if place.used and not exists:
        place.forget()
    place.prepare()
    if exists:
        scene.stage.say(f"A demo was here before: the next two weeks are added to its {len(place.files())} days.")


def tell(scene: Scene) -> None:
    """What was found out on the way is in the scene's stage."""
    stage = scene.stage
    with stage.act("Files: what the shop's systems deliver"):
        deliveries = make_deliveries(scene)
    with stage.act("Pipeline: bronze, silver and gold, week by week"):
        weeks = take_in(scene, deliveries)
    with stage.act("Race: two writers, one table"):
        race = let_them_race(scene)
    with stage.act("Looking back: time travel and schema evolution"):
        look_back(scene, *weeks)
    with stage.act("Catalog: what it knows of all this"):
        timelines = show_knowledge(scene, race)
    with stage.act("Summary"):
        sum_up(scene, weeks, race, timelines)
