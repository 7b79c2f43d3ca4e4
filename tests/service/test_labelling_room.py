"""The labelling room as people use it: instructions, progress, corrections, comments, tests, and the admin's tables."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service_pages import Visit, needs_chromium
from service_projects import QUIET, TEXTS, Client, given, kept, serving, text_project

from labelonce.service import Project
from labelonce.service._figures import figures
from labelonce.service._instructions import FILE, copy_instructions, read_instructions
from labelonce.service._live import Live
from labelonce.service._store import Answer, AnswerRow

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")
GUIDE = """# What is asked

Look at *all* of it. <b onclick="x()">No</b> [more](https://example.org) [bad](javascript:alert(1))

## cat

![a cat](images/cat.png)
"""


@pytest.fixture
def guide(tmp_path: Path) -> Path:
    image = pytest.importorskip("PIL.Image", reason="no Pillow: pip install 'labelonce[images]'")
    (tmp_path / "guide" / "images").mkdir(parents=True)
    image.new("RGB", (40, 30), "red").save(tmp_path / "guide" / "images" / "cat.png")
    (tmp_path / "guide" / "read.md").write_text(GUIDE)
    return tmp_path / "guide" / "read.md"


def many_texts(folder: Path, n: int, classes: list[str], **settings: Any) -> Project:
    (folder / "tasks.csv").write_text("task,text\n" + "".join(f"t{i},text {i}\n" for i in range(n)))
    return Project.make(folder / "p", folder / "tasks.csv", classes, **{"text": "text"} | QUIET | settings)


def tags(nodes: list[Any]) -> list[tuple[str, str]]:
    """Return every element with where it leads."""
    found = []
    for node in nodes:
        if not isinstance(node, str):
            found += [(node["tag"], node.get("href", node.get("src", ""))[:22]), *tags(node["children"])]
    return found


def test_instructions_become_elements_and_never_html(guide: Path, tmp_path: Path) -> None:
    copy_instructions(guide, tmp_path)
    nodes = read_instructions(tmp_path)
    found = [one for one in tags(nodes) if one[0] in ("h1", "h2", "em", "a", "img")]
    assert found[:3] == [("h1", ""), ("em", ""), ("a", "https://example.org")]
    assert found[3:] == [("h2", ""), ("img", "data:image/png;base64,")]
    assert '<b onclick="x()">' in json.dumps(nodes).replace('\\"', '"')  # as text
    assert "javascript" not in str([where for _, where in tags(nodes)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("![x](../secret.png)", "next to the text"),
        ("![x](https://example.org/x.png)", "no such file"),
        ("![x](images/none.png)", "no such file"),
        ("![x](read.md)", "next to the text"),
    ],
)
def test_images_of_instructions_lie_next_to_them(guide: Path, tmp_path: Path, text: str, said: str) -> None:
    guide.write_text(text)
    with pytest.raises(ValueError, match=said):
        copy_instructions(guide, tmp_path)
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("text", ["[" * 50_000, "> " * 5_000 + "x", "*" * 50_000, "- " * 3_000])
def test_no_instructions_are_too_deep(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    json.dumps(read_instructions(tmp_path))


def test_known_answers_are_mixed_in_and_told(tmp_path: Path) -> None:
    (tmp_path / "known.csv").write_text("task,label\n" + "".join(f"t{i},cat\n" for i in range(5)))
    project = many_texts(tmp_path, 40, ["cat", "dog"], known=tmp_path / "known.csv", known_share=0.25, feedback=True)
    with serving(project) as http:
        ann, admin = Client(http, project.add_workers(["ann"])["ann"]), Client(http, project.add_admin())
        told = []
        for _ in range(20):
            task = ann.get("/api/next").json()["task"]
            told.append((task, ann.label(task, "dog" if task == "t0" else "cat").json()["known"]))
            if told[-1][0] == "t0":
                number = ann.get("/api/me").json()["recent"][0]["id"]
                assert ann.delete(f"/api/annotations/{number}").status_code == 409  # it would be right the second time
        (row,) = admin.get("/api/workers").json()
    assert [known for task, known in told if int(task[1:]) < 5] == ["cat"] * 5
    assert {known for task, known in told if int(task[1:]) >= 5} == {None}
    assert row["known"] == [5, 4]


def test_known_answers_must_be_tasks_and_classes(tmp_path: Path) -> None:
    (tmp_path / "known.csv").write_text("task,label\nt1,bird\n")
    with pytest.raises(ValueError, match=r"known.csv must have labels among the classes; got 'bird'"):
        many_texts(tmp_path, 3, ["cat", "dog"], known=tmp_path / "known.csv")
    assert not (tmp_path / "p").exists()


def test_a_share_of_the_tasks_gets_a_blind_second_label(tmp_path: Path) -> None:
    live = Live(many_texts(tmp_path, 200, ["cat", "dog"], overlap=0.2, max_labels=1), [], None)
    for number in range(1, 400):
        worker = ("ann", "bob")[number % 2]
        task = live.next(worker)
        if task is None:
            break
        live.take(AnswerRow(number, worker, str(number), task, "cat", None, None, None, 0.0, None))
    counts = live.labels_per_task.tolist()
    assert (min(counts), max(counts)) == (1, 2)
    assert 20 < counts.count(2) < 65  # 40 are expected, with a spread of 6
    assert live.next("ann") is None


def test_nothing_settles_by_one_label_before_a_model_has_proved_itself(tmp_path: Path) -> None:
    live = Live(many_texts(tmp_path, 2, ["cat", "dog"], settled_risk=0.49), [], None)
    for number, worker in enumerate(("ann", "bob"), 1):
        live.take(AnswerRow(number, worker, "k", "t0", "cat", None, None, None, 0.0, None))
        assert live.n_settled == number - 1


def test_comments_skips_and_a_task_are_shown_to_the_admin(tmp_path: Path) -> None:
    project = text_project(tmp_path)
    with serving(project) as http:
        ann, admin = Client(http, project.add_workers(["ann", "bob"])["ann"]), Client(http, project.add_admin())
        body = {"key": "1", "task": "a", "text": "two animals", "flagged": True}
        assert [ann.post("/api/comments", body).status_code for _ in range(2)] == [201, 201]
        ann.post("/api/skips", {"key": "2", "task": "b", "reason": "broken"})
        ann.post("/api/annotations", {"key": "3", "task": "a", "label": "cat", "seconds": 3.0})
        found = admin.get("/api/figures").json()
        assert (found["reasons"], found["seconds"], found["agreement"]) == ([["broken", 1]], {"ann": 3.0}, None)
        assert [(row["label"], row["given"]) for row in found["classes"]] == [("cat", 1), ("dog", 0)]
        remarks = {(one["kind"], one["text"], one["flagged"]) for one in found["remarks"]}
        assert remarks == {("comment", "two animals", True), ("skip", "broken", False)}
        task = admin.get("/api/task", params={"task": "a"}).json()
        assert task["answers"] == [{"worker": "ann", "label": "cat", "seconds": 3.0}]
        assert [one["text"] for one in task["remarks"]] == ["two animals"]
        links = {row["worker"]: row["has_link"] for row in admin.get("/api/workers").json()}
        assert links == {"ann": True, "bob": True}
        archive = tmp_path / "all.zip"
        archive.write_bytes(admin.get("/api/export?what=everything").content)
    with zipfile.ZipFile(archive) as files:
        assert files.namelist() == ["annotations.csv", "labels.csv", "workers.csv", "remarks.csv"]
        assert [files.read(name).count(b"\n") for name in files.namelist()] == [2, 7, 3, 3]


def answered(project: Project) -> dict[str, list[tuple[str, str | None]]]:
    rows = kept(project)
    return {name: [(row.task, row.label) for row in rows if row.worker == name] for name in ("ann", "bob")}


@needs_chromium
def test_two_people_label_thirty_tasks_by_keyboard(browser: Any, tmp_path: Path) -> None:
    """They undo, skip, correct, comment, reload and lose the connection: what is kept is what they meant."""
    project = many_texts(tmp_path, 30, ["even", "odd"], goal=15, overlap=0.0, max_labels=1)
    tokens = project.add_workers(["ann", "bob"])
    meant: dict[str, dict[str, str | None]] = {"ann": {}, "bob": {}}
    with serving(project) as http:
        people = {name: Visit(browser, f"{http.base_url}#token={token}") for name, token in tokens.items()}

        def press(name: str, key: str, task: str, label: str | None) -> None:
            people[name].page.keyboard.press(key)
            meant[name][task] = label

        def labels(name: str) -> int:
            return sum(label is not None for label in meant[name].values())

        def own(name: str) -> str:
            given = labels(name)
            return f"{given} of 15 labels from you" if given < 15 else f"{given} labels from you, your goal is reached"

        for turn in range(30):
            name = ("ann", "bob")[turn % 2]
            page, now = people[name].page, people[name].shows_a_task()
            task = f"t{now.split()[1]}"
            right = ("even", "odd")[int(task[1:]) % 2]
            key = {"even": "1", "odd": "2"}[right]
            if turn == 4:  # a slip of the finger, taken back
                page.keyboard.press("2" if key == "1" else "1")
                page.wait_for_function("now => document.getElementById('text').textContent !== now", arg=now)
                people[name].shows_a_task()
                page.keyboard.press("z")
                page.wait_for_function("now => document.getElementById('text').textContent === now", arg=now)
                people[name].shows_a_task()
            if turn == 7:
                page.reload()
                assert people[name].shows_a_task() == now
            if turn == 9:
                page.keyboard.press("c")
                page.get_by_label("What should be known").fill("1 2 z s")  # letters that are keys elsewhere
                page.get_by_role("button", name="Send", exact=True).last.click()
                people[name].waits_for("#notice", "Your comment is kept")
            if turn == 12:  # the connection is lost while the label is sent, and the page is reloaded
                page.route("**/api/annotations", lambda route: route.abort())
                press(name, key, task, right)
                people[name].waits_for("#notice", "Your label is kept here")
                page.unroute("**/api/annotations")
                page.reload()
            elif turn == 15:  # and while the next task is asked for
                page.route("**/api/next", lambda route: route.abort())
                press(name, key, task, right)
                people[name].waits_for("#notice", "The next task comes")
                page.unroute("**/api/next")
            elif turn == 18:
                page.keyboard.press("s")
                page.get_by_label("I cannot tell").check()
                page.keyboard.press("Enter")
                meant[name][task] = None
            else:
                press(name, key, task, right)
            if turn < 28:
                people[name].waits_for("#done", own(name))
                page.wait_for_function("now => document.getElementById('text').textContent !== now", arg=now)
        for name, visit in people.items():
            visit.waits_for("#done", own(name))
        for name in ("ann", "bob"):  # what is out with somebody, and what ann skipped
            visit = people[name]
            visit.page.reload()
            while visit.page.locator("#finished:visible, #choices :enabled").first.get_attribute("id") != "finished":
                task = f"t{visit.shows_a_task().split()[1]}"
                press(name, "12"[int(task[1:]) % 2], task, ("even", "odd")[int(task[1:]) % 2])
                visit.waits_for("#done", own(name))
            assert f"You gave {labels(name)} labels" in visit.text("#summary")
        expected = [name for name in people["ann"].trouble + people["bob"].trouble if "ERR_FAILED" not in name]
        assert expected == []
        for visit in people.values():
            visit.page.close()
    assert {name: dict(rows) for name, rows in answered(project).items()} == meant
    assert sum(len(rows) for rows in answered(project).values()) == 31


@needs_chromium
def test_instructions_open_at_first_and_at_a_class(browser: Any, guide: Path, tmp_path: Path) -> None:
    project = text_project(tmp_path, guide=guide)
    token = project.add_workers(["ann"])["ann"]
    with serving(project) as http:
        visit = Visit(browser, f"{http.base_url}#token={token}")
        visit.page.locator("dialog#guide[open]").wait_for()
        assert visit.page.locator("#guide-text img").evaluate("one => one.decode().then(() => one.naturalWidth)") == 40
        assert '<b onclick="x()">No</b>' in visit.text("#guide-text")
        visit.page.keyboard.press("1")  # no label while it is open
        visit.page.get_by_role("button", name="Close").click()
        visit.shows_a_task()
        visit.page.keyboard.press("i")
        visit.page.keyboard.press("Escape")
        visit.page.get_by_role("button", name="What cat means").click()
        assert visit.page.locator("dialog#guide[open]").is_visible()
        assert visit.page.get_by_role("button", name="What dog means").count() == 0
        visit.ends_well()
    assert answered(project)["ann"] == []


@needs_chromium
def test_classes_beyond_ten_have_keys_and_can_be_found(browser: Any, tmp_path: Path) -> None:
    project = many_texts(tmp_path, 4, [f"kind {n:02d}" for n in range(40)])
    token = project.add_workers(["ann"])["ann"]
    with serving(project) as http:
        visit = Visit(browser, f"{http.base_url}#token={token}")
        visit.shows_a_task()
        for n, keys in enumerate((["w"], ["m"], ["/", "3", "9", "Enter"]), 1):
            for key in keys:
                visit.page.keyboard.press(key)
            visit.waits_for("#done", f"{n} label")
            visit.shows_a_task()
        assert visit.page.locator("#recent li bdi:nth-child(2)").all_inner_texts() == ["kind 39", "kind 31", "kind 11"]
        visit.page.locator("#recent button").nth(1).click()  # the second one is corrected
        visit.waits_for("#done", "2 labels")
        visit.shows_a_task()
        visit.page.keyboard.press("1")
        visit.waits_for("#done", "3 labels")
        visit.shows_a_task()
        visit.ends_well()
    assert sorted(str(label) for _, label in answered(project)["ann"]) == ["kind 00", "kind 11", "kind 39"]


@needs_chromium
def test_the_admin_revokes_makes_links_and_reads_tasks(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path)
    project.add_workers(["ann", "eve"])
    given(project, [Answer(worker, worker, task, "cat") for worker, task in (("ann", "a"), ("bob", "a"), ("ann", "b"))])
    with serving(project) as http:
        visit = Visit(browser, f"{http.base_url}/dashboard#token={project.add_admin()}")
        visit.page.on("dialog", lambda asked: asked.accept())
        visit.waits_for("#workers tbody tr", "has not begun")
        assert "revoked" in visit.page.locator("#workers tr", has_text="bob").inner_text()
        visit.page.get_by_role("button", name="Revoke the link of eve").click()
        visit.waits_for("#added", "works no longer")
        visit.page.get_by_role("button", name="Make a new link for bob").click()
        visit.waits_for("#added", "shown this once")
        assert project.workers() == ["ann", "bob"]
        assert "1 tasks have labels by two or more people" in visit.text("#agreement")
        visit.page.get_by_role("button", name="Show task a").click()
        visit.waits_for("#one-said", "bob: cat")
        assert visit.text("#one-text") == TEXTS["a"]
        visit.ends_well()


@needs_chromium
def test_a_task_that_was_labelled_in_another_tab_is_not_asked_again(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path)
    with serving(project) as http:
        address = f"{http.base_url}#token={project.add_workers(['ann'])['ann']}"
        context = browser.new_context()
        tabs = [Visit(context, address) for _ in range(2)]
        first = [tab.shows_a_task() for tab in tabs]
        assert first[0] == first[1]
        for tab in tabs:
            tab.page.keyboard.press("1")
            tab.page.wait_for_function("text => document.getElementById('text').textContent !== text", arg=first[0])
        assert "labelled already" in tabs[1].text("#notice")
        project.revoke(["ann"])
        Client(http, project.add_admin()).delete("/api/tokens?worker=ann")  # the service looks at once
        tabs[0].shows_a_task()
        tabs[0].page.keyboard.press("1")
        tabs[0].waits_for("#notice", "This link does not work, or it was revoked.")
        context.close()
    assert len(answered(project)["ann"]) == 1


@needs_chromium
def test_nobodys_name_breaks_the_dashboard(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path)
    names = ["toString", "__proto__", "constructor"]
    given(project, [Answer(name, "k", "a", "cat", seconds=1.0 if name == "__proto__" else None) for name in names])
    with serving(project) as http:
        visit = Visit(browser, f"{http.base_url}/dashboard#token={project.add_admin()}")
        visit.waits_for("#classes tbody tr", "cat")
        assert sorted(visit.page.locator("#workers tbody th").all_inner_texts()) == sorted(names)
        visit.ends_well()


def test_classes_and_changes_over_time_are_seen_by_the_belief_of_a_fit(tmp_path: Path) -> None:
    project = many_texts(tmp_path, 200, ["even", "odd"])
    belief = np.tile([[0.99, 0.01], [0.01, 0.99]], (100, 1))
    rows: list[AnswerRow] = []
    for place in range(200):  # ann is right; bob was, and now says "even" of everything
        for worker, wrong in (("ann", False), ("bob", place >= 100 and place % 2 == 1)):
            label = ("even", "odd")[place % 2] if not wrong else "even"
            rows.append(AnswerRow(len(rows), worker, "k", f"t{place}", label, None, None, 2.0, float(place), None))
    found = figures(project, rows, [], belief)
    even, odd = found["classes"]
    assert (even["given"], odd["given"]) == (250, 150)
    assert (round(even["precision"], 1), round(odd["precision"], 2)) == (0.8, 0.99)
    assert (even["recall"], odd["recall"]) == pytest.approx((0.99, 0.75), abs=0.01)
    assert odd["instead"] == ["even", pytest.approx(0.25, abs=0.01)]
    assert list(found["changed"]) == ["bob"]
    assert [round(one, 1) for one in found["changed"]["bob"]] == [1.0, 0.5]
    right = [period["right"] for period in found["periods"]]
    assert min(right[:4]) > 0.98 > 0.8 > max(right[4:])
    assert sum(period["labels"] for period in found["periods"]) == 400
    assert {period["seconds"] for period in found["periods"]} == {2.0}
