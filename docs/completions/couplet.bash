# bash completion for couplet

_couplet() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
  local commands="run chat explain tokenize score template inspect bench serve quantize convert pull list rm"
  local types="q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k_s q3_k_m q3_k_l q4_k_s q4_k_m q5_k_s q5_k_m q6_k f16 bf16 f32"
  local common="--threads --precision --quantize --cache-format --context --pre-tokenizer --json --quiet --help --version"
  local sampling="--max-tokens --temperature --top-k --top-p --min-p --repetition-penalty --presence-penalty
    --frequency-penalty --logit-bias --stop --seed --ignore-eos --logprobs"
  local template="--template --template-arg --template-date"
  local models="smollm2 gemma3" options=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "$commands --help --version" -- "$current"))
    return
  fi
  case $previous in
    --precision) COMPREPLY=($(compgen -W "fast fine" -- "$current")); return ;;
    --quantize | --type) COMPREPLY=($(compgen -W "$types" -- "$current")); return ;;
    --cache-format) COMPREPLY=($(compgen -W "q16 f16" -- "$current")); return ;;
    --template | --html | --trace | --api-key-file | --tls-cert | --tls-key) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case $command in
    run) options="--raw --system --steps --trace --force $template $sampling" ;;
    chat) options="--system $template $sampling" ;;
    explain) options="--raw --alternatives --choose --what-if --html --trace --force --system $template $sampling" ;;
    tokenize) options="--bos --special --batch --detokenize" ;;
    score) options="--top --chunk --decode-from --parallel --cold" ;;
    template) options="$template" ;;
    bench) options="--prefill --decode --depth --batch --repeat --requests --trace --force" ;;
    serve) options="--host --port --api-key-file --allowed-host --cors-origin --tls-cert --tls-key --model-name
      --max-sequences --max-queue --itl-target-ms --max-prompt-tokens --max-output-tokens --max-choices
      --max-connections --max-body-bytes --request-timeout --drain-timeout --log-json" ;;
    quantize | convert) options="--type --allow-requantize --force" ;;
    inspect) options="--machine" ;;
    pull) options="--sha256 --timeout --retries" common="--json --quiet --help --version" ;;
    list) common="--json --quiet --help --version" models="" ;;
    rm) common="--quiet --help --version" ;;
  esac
  case $current in
    -*) COMPREPLY=($(compgen -W "$options $common" -- "$current")) ;;
    *)
      COMPREPLY=($(compgen -W "$models" -- "$current"))
      [[ "$command" =~ ^(pull|list|rm)$ ]] || COMPREPLY+=($(compgen -f -- "$current"))
      ;;
  esac
}
complete -o filenames -F _couplet couplet
