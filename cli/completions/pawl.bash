# bash completion of pawl(1)
_pawl()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb= i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -*) ;;
        *)
            if [[ -z $verb ]]; then
                verb=${COMP_WORDS[i]}
                case $verb in ckpt|tokens|train|llmcp35|help) ;; *) break ;; esac
            else
                verb="$verb ${COMP_WORDS[i]}"
                break
            fi
            ;;
        esac
    done
    case $verb in
    '') COMPREPLY=($(compgen -W 'info ls verify convert shard merge index generate logits bench ckpt tokens train llmcp35 help --version --help' -- "$word")) && return ;;
    help) COMPREPLY=($(compgen -W 'info ls verify convert shard merge index generate logits bench ckpt tokens train llmcp35' -- "$word")) && return ;;
    ckpt) COMPREPLY=($(compgen -W 'ls latest prune repair copy pin unpin' -- "$word")) && return ;;
    tokens) COMPREPLY=($(compgen -W 'pack info verify cat' -- "$word")) && return ;;
    llmcp35) COMPREPLY=($(compgen -W 'info verify replay convert' -- "$word")) && return ;;
    train) COMPREPLY=($(compgen -W 'bigram' -- "$word")) && return ;;
    esac
    case "$verb $before" in
    *' --trust') COMPREPLY=($(compgen -W 'full size-only' -- "$word")) && return ;;
    *' --color') COMPREPLY=($(compgen -W 'auto always never' -- "$word")) && return ;;
    'ls --sort') COMPREPLY=($(compgen -W 'name bytes offset' -- "$word")) && return ;;
    'verify --mode') COMPREPLY=($(compgen -W 'strict compat lint' -- "$word")) && return ;;
    'verify --profile') COMPREPLY=($(compgen -W 'course tinyllm' -- "$word")) && return ;;
    'convert --align'|'shard --align'|'merge --align') COMPREPLY=($(compgen -W '8 64 256 4096' -- "$word")) && return ;;
    'tokens pack --tokenizer') COMPREPLY=($(compgen -W 'bytes' -- "$word")) && return ;;
    'tokens pack --as') COMPREPLY=($(compgen -W 'auto' -- "$word")) && return ;;
    'train bigram --method') COMPREPLY=($(compgen -W 'counts autograd' -- "$word")) && return ;;
    'train bigram --optimizer') COMPREPLY=($(compgen -W 'adamw sgd' -- "$word")) && return ;;
    'train bigram --progress') ;;
    *' --progress') COMPREPLY=($(compgen -W 'auto always never' -- "$word")) && return ;;
    esac
    if [[ $word == -* ]]; then
        case $verb in
        'info') COMPREPLY=($(compgen -W '--trust --bytes --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'ls') COMPREPLY=($(compgen -W '--sort --tree --bytes --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'verify') COMPREPLY=($(compgen -W '--mode --finite --profile --trust --vocab --sums --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'convert') COMPREPLY=($(compgen -W '--only --drop --rename --metadata --align --max-shard-size --dry-run --force --overwrite --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'shard') COMPREPLY=($(compgen -W '--max-shard-size --align --dry-run --force --overwrite --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'merge') COMPREPLY=($(compgen -W '--align --dry-run --force --overwrite --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'index') COMPREPLY=($(compgen -W '--dry-run --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'ckpt ls') COMPREPLY=($(compgen -W '--trust --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'ckpt latest') COMPREPLY=($(compgen -W '--trust --wait --newer-than --timeout --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'ckpt prune') COMPREPLY=($(compgen -W '--keep --keep-every --keep-best --dry-run --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'ckpt repair') COMPREPLY=($(compgen -W '--dry-run --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'ckpt copy') COMPREPLY=($(compgen -W '--force --overwrite --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'ckpt pin') COMPREPLY=($(compgen -W '--json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'ckpt unpin') COMPREPLY=($(compgen -W '--json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'tokens pack') COMPREPLY=($(compgen -W '--tokenizer --ids --as --documents --eot --vocab --width --max-ids --prefix --tokenizer-id --tokenizer-file --dataset --dataset-version --corpus-manifest --force --overwrite --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'tokens info') COMPREPLY=($(compgen -W '--vocab --split --bytes --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'tokens verify') COMPREPLY=($(compgen -W '--vocab --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'tokens cat') COMPREPLY=($(compgen -W '--bytes --split --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'llmcp35 info') COMPREPLY=($(compgen -W '--bytes --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'llmcp35 verify') COMPREPLY=($(compgen -W '--finite --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'llmcp35 replay') COMPREPLY=($(compgen -W '--inputs --targets --batch --rate --out --trace --force --overwrite --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'llmcp35 convert') COMPREPLY=($(compgen -W '--force --overwrite --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'train bigram') COMPREPLY=($(compgen -W '--data --out --method --alpha --seed --lr --steps --max-steps --batch --seq-len --ckpt-every --optimizer --momentum --keep --resume --progress --async --sums --vocab --split --threads --force --overwrite --json --quiet --verbose --color --help' -- "$word")) ;;
        'generate') COMPREPLY=($(compgen -W '--model --prompt --max-tokens --greedy --temperature --seed --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'bench') COMPREPLY=($(compgen -W '--bytes --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        'logits') COMPREPLY=($(compgen -W '--model --prompt --prefix-ids --json --quiet --verbose --color --progress --help' -- "$word")) ;;
        esac
        return
    fi
    COMPREPLY=($(compgen -f -- "$word"))
}
complete -o filenames -F _pawl pawl
