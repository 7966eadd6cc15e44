"""Small pieces of HTML; whatever is text is escaped here, and nowhere else is text put into markup."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True, slots=True)
class Markup:
    """HTML that is safe to put into a page; everything else is text and gets escaped."""

    html: str


Content = Markup | str | float | int


def render(content: Content) -> str:
    """Return content as HTML, escaped unless it is markup."""
    return content.html if isinstance(content, Markup) else escape(str(content))


def tag(name: str, *contents: Content, **attributes: Any) -> Markup:
    """Return an element; `class_` is the attribute class, underscores are dashes, None leaves an attribute out.

    >>> tag("p", "a < b", class_="note").html
    '<p class="note">a &lt; b</p>'
    """
    listed = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name == "input":
        return Markup(f"<{name}{listed}>")
    return Markup(f"<{name}{listed}>{''.join(map(render, contents))}</{name}>")


def join(contents: Iterable[Content], between: str = "") -> Markup:
    """Return contents one after the other."""
    return Markup(between.join(map(render, contents)))


def paragraph(*contents: Content, class_: str | None = None) -> Markup:
    """Return a paragraph."""
    return tag("p", *contents, class_=class_)


def definitions(entries: Iterable[tuple[Content, Content]], class_: str | None = None) -> Markup:
    """Return a list of terms with what they are."""
    return tag("dl", *(tag("div", tag("dt", term), tag("dd", value)) for term, value in entries), class_=class_)


def table(
    head: Sequence[Content],
    body: Iterable[Markup],
    *,
    caption: str,
    class_: str | None = None,
    tall: bool = False,
    **attributes: Any,
) -> Markup:
    """Return a table that scrolls inside its own box where it is too wide, or `tall`; `body` are its rows."""
    inner = tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag(
            "thead",
            tag("tr", *(cell if isinstance(cell, Markup) else tag("th", cell, scope="col") for cell in head)),
        ),
        tag("tbody", *body),
        class_=class_,
        **attributes,
    )
    return tag(
        "div", inner, class_="scroll tall" if tall else "scroll", tabindex="0", role="region", aria_label=caption
    )


def data_script(identity: str, data: Any) -> Markup:
    r"""Return data for the page's script, as JSON that cannot end its own element.

    >>> data_script("d", {"a": "</script>"}).html
    '<script type="application/json" id="d">{"a":"\\u003c/script\\u003e"}</script>'
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json" id="{escape(identity)}">{text}</script>')
