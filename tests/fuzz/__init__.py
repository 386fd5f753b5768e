"""Hostile bytes by the million: targets, and what makes inputs for them.

``python -m tests.fuzz --inputs 10000000`` tries that many inputs on all targets, in whichever build is imported, and
prints what broke an invariant with the input that did it. The suite tries a few hundred inputs on each target.
"""
