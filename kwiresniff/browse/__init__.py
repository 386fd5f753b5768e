"""A full-screen program over captures. Textual is imported in ``kwiresniff.browse.app`` and what that imports."""
