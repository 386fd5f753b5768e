# Completion for bash: installed where bash-completion looks, or sourced from ~/.bashrc.
eval "$(_KWIRESNIFF_COMPLETE=bash_source kwiresniff)"
