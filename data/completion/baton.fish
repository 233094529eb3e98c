# Completion of baton for fish: baton completion fish > ~/.config/fish/completions/baton.fish

function __baton_complete
    set -l words (commandline -opc)
    set -l lines ($words[1] __complete -- $words[2..] (commandline -ct) 2>/dev/null)
    switch "$lines[1]"
        case files
            __fish_complete_path (commandline -ct)
        case command
            # The line of the command that is to run under the lock.
            __fish_complete_subcommand --fcs-skip=(contains -i -- -- $words)
        case words
            printf '%s\n' $lines[2..]
    end
end

complete -c baton -f -a '(__baton_complete)'
