# Completion of baton for bash: source <(baton completion bash). Runs on bash 3.2 too, which macOS has.

_baton() {
  # Readline takes : and = for ends of words, where the shell does not. So the words are put together again by the blanks
  # between them, up to the cursor.
  local rest=${COMP_LINE:0:COMP_POINT} words=() last=-1 word gap
  for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    gap=${rest%%[![:blank:]]*}
    rest=${rest:${#gap}}
    word=${word:0:${#rest}}
    rest=${rest:${#word}}
    if [[ -n $gap || $last -lt 0 ]]; then
      last=$((last + 1))
      words[last]=$word
    else
      words[last]+=$word
    fi
  done

  # What stands before the last of them stays as it is, and is not part of a candidate.
  local current=${words[last]} quote= kept=
  case $current in [\'\"]*) quote=${current:0:1} ;; esac
  if [[ -z $quote && $COMP_WORDBREAKS == *:* && $current == *[:=]* ]]; then
    kept=${current%"${current##*[:=]}"}
  fi

  local kind= value
  COMPREPLY=()
  while IFS= read -r value; do
    if [[ -z $kind ]]; then
      kind=$value
      continue
    fi
    value=${value%%$'\t'*}
    if [[ -z $quote ]]; then
      printf -v value %q "$value"
    elif [[ $value == *[\'\"\\\`\$!]* ]]; then
      # It would end the quotes, or mean something else inside them.
      continue
    fi
    COMPREPLY+=("${value#"$kept"}")
  done < <("$1" __complete -- "${words[@]:1}" 2>/dev/null)

  case $kind in
    files) compopt -o default 2>/dev/null ;;
    command) _baton_behind ;;
  esac
}

# The line of the command that is to run under the lock.
_baton_behind() {
  local at=1 value
  while [[ $at -lt $COMP_CWORD && ${COMP_WORDS[at]} != -- ]]; do at=$((at + 1)); done
  at=$((at + 1))
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset "$at"
  elif declare -F _command_offset >/dev/null; then
    _command_offset "$at"
  elif [[ $COMP_CWORD -eq $at ]]; then
    while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
  else
    compopt -o default 2>/dev/null
  fi
}

complete -F _baton baton
