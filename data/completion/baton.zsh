#compdef baton
# Completion of baton for zsh: source <(baton completion zsh) behind compinit, or as a file _baton in a folder of $fpath.

_baton() {
  local -a lines values shown
  local line
  lines=("${(@f)$("$words[1]" __complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  case $lines[1] in
    files) _files ;;
    command)
      # The line of the command that is to run under the lock.
      local behind=${words[(i)--]}
      words=("${(@)words[behind+1,-1]}")
      ((CURRENT -= behind))
      _normal
      ;;
    words)
      for line in "${(@)lines[2,-1]}"; do
        values+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  -- }")
      done
      compadd -l -d shown -a values
      ;;
  esac
}

if [[ $funcstack[1] == _baton ]]; then
  _baton "$@"
else
  compdef _baton baton
fi
