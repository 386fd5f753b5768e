"""A report as one self-contained page: no script, nothing fetched from anywhere."""

from kwiresniff.render.page.html import check, page

__all__ = ["check", "page"]
