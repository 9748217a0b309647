#!/usr/bin/env python3
"""Makes a tiny random model of each family with Hugging Face transformers, in odd sizes, and its logits.

    make_tiny_models.py [NAME ...]                 # tests/data/families/NAME.{head,logits} and tests/data/folders/NAME.json,
                                                   # all where none is named
    make_tiny_models.py --gguf DIR --folder DIR    # besides: whole GGUF files; folders as save_pretrained writes them

Needs torch, transformers, safetensors and gguf (PyPI). A weight is a function of its tensor's name in the GGUF file and its place
(`generate`), so the test makes the weights itself and what is committed is small: NAME.head is the GGUF file up to the
end of its rope tensors (without the other tensors' data), NAME.logits a GGUF file of the prompt and its logits: "logits"
in float32, "exact" in float64 (rounded to float32 in the file), the greatest difference of the two, and the greatest that
keys and values rounded to f16 make. Tensors and keys are named as llama.cpp's converter names them, and turned as it
turns them. folders/NAME.json is the folder that save_pretrained writes: its config.json, and how each tensor is made of the
GGUF file's (`recipe`).
"""

import argparse
import contextlib
import json
import pathlib
import re
import sys

import gguf
import numpy
import safetensors
import torch
import transformers

HEADS, KV_HEADS, HEAD_DIM, HIDDEN, INNER, VOCAB, LAYERS, WINDOW = 6, 3, 40, 96, 133, 517, 4, 24
CONTEXT = 160
POSITIONS = [0, 1, 7, 15, 16, 23, 24, 25, 40, 47, 48, 69]  # of the prompt, whose logits are kept
PAIRED = ("llama", "granite")  # architectures whose query and key rows the file interleaves


def generate(name, shape):
    """Values in steps of 1/128 and less, exact in float32 and after + 1: norms around one, the rest around zero."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) % 2**64
    with numpy.errstate(over="ignore"):
        x = numpy.arange(numpy.prod(shape), dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15) + numpy.uint64(seed)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        x = x ^ (x >> numpy.uint64(31))
    unit = ((x >> numpy.uint64(56)).astype(numpy.float32) - 128) / 128
    if name.endswith("norm.weight"):
        unit = 1 + unit / 2
    elif "exp_probs" in name or name.endswith(".weight") and "sinks" not in name and "ffn_gate_inp" not in name:
        unit = unit / 8
    return unit.reshape(shape)


def rope(kind="default", theta=10000.0, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


LONG = {"short_factor": [1 + i / 16 for i in range(12)], "long_factor": [1 + i * i / 8 for i in range(12)]}
LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=40, beta_fast=32.0, beta_slow=1.0)
EXPERTS = {"num_experts_per_tok": 3, "num_local_experts": 7, "num_experts": 7, "router_jitter_noise": 0.0}
GEMMA_LAYERS = ["sliding_attention", "full_attention"] * 2
# Prompts in which no router finds the last expert taken and the first left out nearly alike: rounding would swap them.
ROUTER_NOISE = 2e-3  # of its input, which changes no choice
PROMPT_SEEDS = {"mixtral": 18, "qwen3moe": 9, "qwen3moe_plain": 9, "gpt-oss": 61, "deepseek2_lite": 27, "deepseek2": 9, "deepseek3": 13}

# name: architecture in GGUF, class in transformers, its options beyond the common ones
MODELS = {
    "llama": ("llama", "Llama", {"rope_parameters": LLAMA3}),
    "llama_linear": ("llama", "Llama", {"rope_parameters": rope("linear", factor=2.5), "attention_bias": True}),
    "llama_dynamic": ("llama", "Llama", {"rope_parameters": rope("dynamic", factor=2.0), "max_position_embeddings": 32,
                                         "tie_word_embeddings": True}),
    "mistral": ("llama", "Mistral", {"sliding_window": WINDOW}),
    "mixtral": ("llama", "Mixtral", EXPERTS),
    "qwen2": ("qwen2", "Qwen2", {"rope_parameters": YARN}),
    "qwen3": ("qwen3", "Qwen3", {"tie_word_embeddings": True}),
    "qwen3moe": ("qwen3moe", "Qwen3Moe", {**EXPERTS, "moe_intermediate_size": 37, "norm_topk_prob": True}),
    "qwen3moe_plain": ("qwen3moe", "Qwen3Moe", {**EXPERTS, "moe_intermediate_size": 37, "norm_topk_prob": False}),
    "gemma": ("gemma", "Gemma", {"tie_word_embeddings": True}),
    "gemma2": ("gemma2", "Gemma2", {"tie_word_embeddings": True, "sliding_window": WINDOW, "query_pre_attn_scalar": 40,
                                    "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0,
                                    "layer_types": GEMMA_LAYERS}),
    "gemma3": ("gemma3", "Gemma3", {"tie_word_embeddings": True, "sliding_window": WINDOW, "query_pre_attn_scalar": 40,
                                    "layer_types": GEMMA_LAYERS, "final_logit_softcapping": None,
                                    "rope_parameters": {"full_attention": rope("linear", 1000000.0, factor=8.0),
                                                        "sliding_attention": rope()}}),
    "phi3": ("phi3", "Phi3", {"hidden_size": 120, "num_attention_heads": 3, "num_key_value_heads": 1,
                              "partial_rotary_factor": 0.6, "sliding_window": None,
                              "original_max_position_embeddings": 32,
                              "rope_parameters": rope("longrope", original_max_position_embeddings=32,
                                                      partial_rotary_factor=0.6, **LONG)}),
    "olmo2": ("olmo2", "Olmo2", {}),
    "olmo3": ("olmo2", "Olmo3", {"sliding_window": WINDOW, "rope_parameters": {"full_attention": YARN, "sliding_attention": rope()},
                                 "layer_types": ["sliding_attention"] * 3 + ["full_attention"]}),
    "granite": ("granite", "Granite", {"embedding_multiplier": 12.0, "attention_multiplier": 0.1,
                                       "residual_multiplier": 0.22, "logits_scaling": 8.0}),
    "gpt-oss": ("gpt-oss", "GptOss", {**EXPERTS, "sliding_window": WINDOW, "intermediate_size": 37,
                                      "layer_types": GEMMA_LAYERS,
                                      "rope_parameters": {**YARN, "rope_theta": 150000.0, "truncate": False}}),
}
MLA = {"kv_lora_rank": 44, "q_lora_rank": 50, "qk_nope_head_dim": 20, "qk_rope_head_dim": 12, "v_head_dim": 28, "head_dim": 12,
       "num_key_value_heads": HEADS, "n_routed_experts": 9, "num_experts_per_tok": 3, "n_shared_experts": 2,
       "moe_intermediate_size": 37, "first_k_dense_replace": 1, "routed_scaling_factor": 2.5}
MODELS |= {
    "deepseek2_lite": ("deepseek2", "DeepseekV2", {**MLA, "q_lora_rank": None, "topk_method": "greedy",
                                                   "routed_scaling_factor": 1.0,
                                                   "rope_parameters": {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707}}),
    "deepseek2": ("deepseek2", "DeepseekV2", {**MLA, "topk_method": "group_limited_greedy", "n_group": 3, "topk_group": 2}),
    "deepseek3": ("deepseek2", "DeepseekV3", {**MLA, "n_group": 3, "topk_group": 2, "norm_topk_prob": True,
                                              "num_mtp_layers": 0,
                                              "rope_parameters": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}}),
}


def make_config(name):
    _, kind, options = MODELS[name]
    common = {
        "vocab_size": VOCAB, "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM,
        "max_position_embeddings": CONTEXT, "tie_word_embeddings": False, "rope_parameters": rope(), "pad_token_id": None,
        "bos_token_id": 1, "eos_token_id": 2,
    }
    text = "TextConfig" if kind == "Gemma3" else "Config"
    return getattr(transformers, kind + text)(**{**common, **options})


def paired(array, heads):
    """Rows of query or key heads as the file interleaves them; `halves` is the way back."""
    return array.reshape(heads, 2, -1, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)


def halves(array, heads):
    return array.reshape(heads, -1, 2, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)


class Weights:
    """Values of transformers' parameters, out of the tensors of the GGUF file, which it remembers."""

    def __init__(self, name, config):
        self.name, self.config = name, config
        self.architecture, self.kind, _ = MODELS[name]
        arch = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == self.architecture)
        self.names = gguf.get_tensor_name_map(arch, LAYERS)
        self.tensors = {}
        self.rope_tensors(config)

    def rope_tensors(self, config):
        parameters = config.rope_parameters
        if parameters.get("rope_type") == "llama3":
            frequencies = parameters["rope_theta"] ** (-numpy.arange(0, HEAD_DIM, 2) / HEAD_DIM)
            turns = parameters["original_max_position_embeddings"] * frequencies / (2 * numpy.pi)
            low, high = parameters["low_freq_factor"], parameters["high_freq_factor"]
            kept = numpy.clip((turns - low) / (high - low), 0, 1)
            self.tensors["rope_freqs.weight"] = (1 / ((1 - kept) / parameters["factor"] + kept)).astype(numpy.float32)
        for length in ("long", "short"):
            if f"{length}_factor" in parameters:
                factors = numpy.array(parameters[f"{length}_factor"], dtype=numpy.float32)
                self.tensors[f"rope_factors_{length}.weight"] = factors

    def tensor(self, name, shape):
        self.tensors[name] = generate(name, shape)
        return self.tensors[name]

    def experts(self, layer, part, shape):
        """The fused tensors of all experts, gate and up side by side or, in gpt-oss, in turns and turned over."""
        oss, count = self.kind == "GptOss", shape[0]
        suffix = "bias" if part.endswith("_bias") else "weight"
        turned = oss and suffix == "weight"
        shape = (count, shape[2], shape[1]) if turned else shape
        if part.startswith("down"):
            array = self.tensor(f"blk.{layer}.ffn_down_exps.{suffix}", shape)
        else:
            half = (count, shape[1] // 2, *shape[2:])
            gate, up = (self.tensor(f"blk.{layer}.ffn_{n}_exps.{suffix}", half) for n in ("gate", "up"))
            array = numpy.stack((gate, up), 2).reshape(shape) if oss else numpy.concatenate((gate, up), 1)
        return array.swapaxes(1, 2) if turned else array

    def latent_heads(self, layer, shape, config):
        """kv_b as newer converters take it apart, so that a head's keys can be taken into its query."""
        rank, keys, values = config.kv_lora_rank, config.qk_nope_head_dim, config.v_head_dim
        key_up = self.tensor(f"blk.{layer}.attn_k_b.weight", (HEADS, rank, keys))
        value_up = self.tensor(f"blk.{layer}.attn_v_b.weight", (HEADS, values, rank))
        return numpy.concatenate((key_up.swapaxes(1, 2), value_up), 1).reshape(shape)

    def parameter(self, key, shape):
        key = key.replace("e_score_correction_bias", "e_score_correction.bias")
        both = re.fullmatch(r"model\.layers\.(\d+)\.self_attn\.kv_b_proj\.weight", key)
        if both and self.name != "deepseek2_lite":
            return self.latent_heads(both[1], shape, self.config)
        fused = re.fullmatch(r"model\.layers\.(\d+)\.mlp\.experts\.(\w+)", key)
        if fused:
            return self.experts(fused[1], fused[2], shape)
        name = self.names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert name, f"no GGUF name for {key}"
        array = self.tensor(name if name.endswith((".weight", ".bias")) else name + ".weight", shape)
        if self.architecture in PAIRED and re.search(r"attn_[qk]\.", name):
            return halves(array, HEADS if "attn_q" in name else KV_HEADS)
        return array - 1 if self.kind.startswith("Gemma") and name.endswith("norm.weight") else array


@contextlib.contextmanager
def float64():
    """Models made and run inside compute all in float64, also what they ask for in float32."""
    kept = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = kept
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def wide_margins(name, model):
    """Sees to it that the routers' choices are clear ones."""
    torch.manual_seed(0)

    def look(router, inputs, outputs):
        choice = outputs[-1].sort(-1).values
        for _ in range(8):
            noisy = router.forward(inputs[0] * (1 + ROUTER_NOISE * torch.randn_like(inputs[0])))[-1]
            assert torch.equal(choice, noisy.sort(-1).values), f"{name}: experts nearly alike, take another prompt"

    hooks = [part.register_forward_hook(look) for part in model.modules() if type(part).__name__.endswith("Router")]
    yield
    for hook in hooks:
        hook.remove()


@contextlib.contextmanager
def f16_cache(model):
    """Attention of the model's kind takes keys and values, or what they are made of, as an f16 cache holds them."""
    rounded = lambda x: x.to(torch.float16).to(x.dtype)
    latent = hasattr(model.model.layers[0].self_attn, "expand_kv")
    where, name = sys.modules[type(model).__module__], "eager_attention_forward"
    if latent:
        where, name = type(model.model.layers[0].self_attn), "expand_kv"
    plain = getattr(where, name)
    setattr(where, name, lambda first, *more, **options: plain(
        first, *((rounded(more[0]), rounded(more[1])) if latent else (more[0], rounded(more[1]), rounded(more[2]))),
        *more[2 if latent else 3:], **options))
    try:
        yield
    finally:
        setattr(where, name, plain)


def make_model(name):
    torch.manual_seed(0)
    config = make_config(name)
    kind = MODELS[name][1]
    model = getattr(transformers, kind + "ForCausalLM")._from_config(config, attn_implementation="eager",
                                                                          experts_implementation="eager", dtype=torch.float32)
    weights, state = Weights(name, config), {}
    for key, value in model.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        state[key] = torch.from_numpy(numpy.ascontiguousarray(weights.parameter(key, tuple(value.shape))))
    unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected.unexpected_keys and set(unexpected.missing_keys) <= {"lm_head.weight"}, unexpected
    return model.eval(), weights.tensors


def add_rope_keys(writer, name, config):
    parameters = config.rope_parameters
    full = parameters.get("full_attention", parameters)
    theta, kind = full["rope_theta"], full["rope_type"]
    writer.add_rope_freq_base(theta)
    writer.add_rope_dimension_count(getattr(config, "qk_rope_head_dim", int(HEAD_DIM * full.get("partial_rotary_factor", 1.0))))
    if "mscale_all_dim" in full:
        writer.add_rope_scaling_yarn_log_mul(0.1 * full["mscale_all_dim"])
    if name == "gemma3":
        writer.add_float32("gemma3.rope.local.freq_base", parameters["sliding_attention"]["rope_theta"])
    if kind in ("linear", "dynamic", "yarn"):
        writer.add_string(f"{writer.arch}.rope.scaling.type", kind)
        writer.add_rope_scaling_factor(full["factor"])
    original = full.get("original_max_position_embeddings")
    if kind == "dynamic":
        original = config.max_position_embeddings
    if kind in ("yarn", "longrope", "dynamic"):
        writer.add_rope_scaling_orig_ctx_len(original)
    if kind == "longrope":
        scale = CONTEXT / original
        writer.add_rope_scaling_attn_factors(float(numpy.sqrt(1 + numpy.log(scale) / numpy.log(original))))


def add_deepseek_keys(writer, name, config):
    key = config.qk_nope_head_dim + config.qk_rope_head_dim
    if name == "deepseek2_lite":  # as older converters write it
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_key_length(key)
        writer.add_value_length(config.v_head_dim)
    else:
        writer.add_head_count_kv(1)
        writer.add_key_length(config.kv_lora_rank + config.qk_rope_head_dim)
        writer.add_value_length(config.kv_lora_rank)
        writer.add_key_length_mla(key)
        writer.add_value_length_mla(config.v_head_dim)
    writer.add_kv_lora_rank(config.kv_lora_rank)
    if config.q_lora_rank:
        writer.add_q_lora_rank(config.q_lora_rank)
    writer.add_leading_dense_block_count(config.first_k_dense_replace)
    writer.add_expert_count(config.n_routed_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    writer.add_expert_weights_norm(bool(config.norm_topk_prob))
    sigmoid = MODELS[name][1] == "DeepseekV3"
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID if sigmoid else gguf.ExpertGatingFuncType.SOFTMAX)
    if config.n_group:
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)


def add_keys(writer, name, config):
    writer.add_block_count(LAYERS)
    # transformers' dynamic scaling goes by the prompt it sees, the engine's by its context.
    writer.add_context_length(POSITIONS[-1] + 1 if name == "llama_dynamic" else CONTEXT)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    if "kv_lora_rank" in MODELS[name][2]:
        add_deepseek_keys(writer, name, config)
    else:
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_key_length(HEAD_DIM)
        writer.add_value_length(HEAD_DIM)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(VOCAB)
    add_rope_keys(writer, name, config)
    if getattr(config, "sliding_window", None):
        writer.add_sliding_window(WINDOW)
    if name == "gemma3":
        writer.add_sliding_window_pattern(2)
    if name == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if name == "granite":
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if MODELS[name][2].get("num_local_experts"):
        writer.add_expert_count(7)
        writer.add_expert_used_count(3)
        if name != "mixtral":
            writer.add_expert_feed_forward_length(getattr(config, "moe_intermediate_size", config.intermediate_size))
        if name == "qwen3moe_plain":
            writer.add_expert_weights_norm(False)


def write_gguf(path, name, config, tensors):
    writer = gguf.GGUFWriter(path, MODELS[name][0])
    writer.add_name("tiny " + name)
    add_keys(writer, name, config)
    writer.add_string("tokenizer.ggml.model", "none")
    for tensor in sorted(tensors, key=lambda n: (not n.startswith("rope"), n)):
        writer.add_tensor(tensor, numpy.ascontiguousarray(tensors[tensor], dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def recipe(array, candidates):
    """How a tensor of transformers' file is made of the GGUF file's, by trying: its values are random enough to tell."""
    def same(made, **how):
        return how if made.shape == array.shape and numpy.array_equal(made, array) else None

    for name, source in candidates.items():
        found = same(source, of=[name]) or same(source - 1, of=[name], plus=-1)
        for heads in (HEADS, KV_HEADS):
            if not found and source.shape == array.shape and len(source) % (2 * heads) == 0:
                found = same(halves(source, heads), of=[name], heads=heads)
        if not found and source.ndim == array.ndim + 1:
            slices = (same(part, of=[name], expert=i) for i, part in enumerate(source))
            found = next((how for how in slices if how), None)
        if not found and source.ndim == 3:
            found = same(source.swapaxes(1, 2), of=[name], turned=True)
        if not found and "attn_k_b" in name:
            values = candidates[name.replace("k_b", "v_b")]
            joined = numpy.concatenate((source.swapaxes(1, 2), values), 1)
            found = same(joined.reshape(-1, source.shape[1]), of=[name, name.replace("k_b", "v_b")], keys=source.shape[2],
                         values=values.shape[1])
        if not found and "ffn_gate_exps" in name:
            names = [name, name.replace("gate", "up")]
            both = [candidates[n] for n in names]
            found = same(numpy.stack(both, 2).reshape(len(source), -1), of=names) if source.ndim == 2 else same(
                numpy.stack([part.swapaxes(1, 2) for part in both], 3).reshape(len(source), source.shape[2], -1),
                of=names, turned=True)
        if found:
            return found
    return None


def write_folder(path, folder, tensors):
    """The folder's recipe: a line a tensor, those of layers and experts once, with {layer} and {expert} for their number."""
    recipes, numbers, layers = {}, {"layer": 1, "expert": 1}, {}
    with safetensors.safe_open(folder / "model.safetensors", "np") as saved:
        for key in saved.keys():
            array = saved.get_tensor(key)
            layer = re.search(r"layers\.(\d+)\.", key)
            prefix = f"blk.{layer[1]}." if layer else ""
            how = recipe(array, {n: t for n, t in tensors.items() if n.startswith(prefix or ("token", "output"))})
            assert how, f"{key}: made of no tensor of the GGUF file"
            number = layer and int(layer[1])
            if layer:
                key = key.replace(layer[0], "layers.{layer}.")
                how["of"] = [name.replace(prefix, "blk.{layer}.") for name in how["of"]]
                numbers["layer"] = max(numbers["layer"], number + 1)
            expert = how.pop("expert", None)
            if expert is not None:
                assert f"experts.{expert}." in key, key
                key = key.replace(f"experts.{expert}.", "experts.{expert}.")
                numbers["expert"] = max(numbers["expert"], expert + 1)
            entry = {"shape": list(array.shape), **how}
            assert recipes.setdefault(key, entry) == entry, key
            layers.setdefault(key, set()).add(number)
    for key, entry in recipes.items():
        if None not in layers[key] and len(layers[key]) < numbers["layer"]:
            entry["layers"] = sorted(layers[key])
    config = json.loads((folder / "config.json").read_text())
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(how)}" for key, how in recipes.items())
    path.write_text(f'{{"config": {json.dumps(config)},\n"numbers": {json.dumps(numbers)},\n"tensors": {{\n{lines}}}}}\n')


def make(name, out, gguf_folder, folder):
    model, tensors = make_model(name)
    prompt = numpy.random.default_rng(PROMPT_SEEDS.get(name, 7)).integers(0, VOCAB, POSITIONS[-1] + 1)
    with torch.no_grad():
        run = lambda model: model(torch.from_numpy(prompt)[None]).logits[0][POSITIONS].numpy()
        logits = run(model)
        with float64():
            exact_model, _ = make_model(name)
            with wide_margins(name, exact_model):
                exact = run(exact_model)
            with f16_cache(exact_model):
                f16 = run(exact_model)

    whole = gguf_folder / f"{name}.gguf"
    write_gguf(whole, name, model.config, tensors)
    reader = gguf.GGUFReader(whole)
    begin = next(t.data_offset for t in reader.tensors if not t.name.startswith("rope"))
    (out / f"{name}.head").write_bytes(whole.read_bytes()[:begin])

    writer = gguf.GGUFWriter(out / f"{name}.logits", "none")
    writer.add_uint64("tiny.model_bytes", whole.stat().st_size)
    writer.add_array("tiny.prompt", [int(token) for token in prompt])
    writer.add_array("tiny.positions", POSITIONS)
    float32_error, f16_error = (float(abs(other - exact).max()) for other in (logits, f16))
    writer.add_float32("tiny.float32_error", float32_error)
    writer.add_float32("tiny.f16_error", f16_error)
    writer.add_tensor("logits", numpy.ascontiguousarray(logits))
    writer.add_tensor("exact", numpy.ascontiguousarray(exact.astype(numpy.float32)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model.save_pretrained(folder / name)
    (out.parent / "folders").mkdir(exist_ok=True)
    write_folder(out.parent / "folders" / f"{name}.json", folder / name, tensors)
    print(f"{name}: logits from {exact.min():.2f} to {exact.max():.2f}, float32 errs by {float32_error:.1e}, "
          f"an f16 cache by {f16_error:.1e}")


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--out", type=pathlib.Path, default=here / "tests/data/families")
    parser.add_argument("--gguf", type=pathlib.Path, help="write whole GGUF files here")
    parser.add_argument("--folder", type=pathlib.Path, help="save transformers' folders here")
    options = parser.parse_args()
    import tempfile
    with tempfile.TemporaryDirectory() as scratch:
        where = options.gguf or pathlib.Path(scratch)
        for path in (options.out, where):
            path.mkdir(parents=True, exist_ok=True)
        for name in options.names or MODELS:
            make(name, options.out, where, options.folder or pathlib.Path(scratch))


if __name__ == "__main__":
    main()
