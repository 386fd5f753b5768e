# Completion for fish: in a folder of completions, such as ~/.config/fish/completions.
_KWIRESNIFF_COMPLETE=fish_source kwiresniff | source
