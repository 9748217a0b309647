#include "formats/hf_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "couplet/error.h"
#include "formats/checkpoint_testing.h"
#include "formats/safetensors_builder.h"

namespace couplet::formats {
namespace {

namespace fs = std::filesystem;

std::string config(const std::string& type, const std::string& more = "") {
  return R"({"model_type":")" + type +
         R"(","hidden_size":4,"num_attention_heads":2,"num_hidden_layers":1,"intermediate_size":6,
         "max_position_embeddings":32,"rms_norm_eps":1e-5,"tie_word_embeddings":true)" +
         (more.empty() ? "" : "," + more) + "}";
}

class HfFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const char* name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  void write_model(const std::string& json, const SafetensorsBuilder& weights) {
    write("config.json", json);
    weights.write(folder_ / "model.safetensors");
  }
  std::string refusal() {
    try {
      CheckpointFile::open(folder_);
      return "none";
    } catch (const Error& error) {
      return error.what();
    }
  }

  fs::path folder_ = fs::path(::testing::TempDir()) / ("couplet_folder_" + std::to_string(::getpid()));
};

SafetensorsBuilder embedding() { return SafetensorsBuilder().add_floats("model.embed_tokens.weight", {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}); }

std::vector<float> values(const CheckpointFile& file, const char* name) {
  const Tensor* tensor = file.find(name);
  if (tensor == nullptr) return {};
  std::vector<float> numbers(tensor->row_length() * tensor->num_rows());
  std::vector<std::byte> made(tensor->row_bytes());
  for (std::uint64_t row = 0; row < tensor->num_rows(); ++row)
    dequantize(tensor->type, tensor->row(row, made.data()), tensor->row_length(), numbers.data() + row * tensor->row_length());
  return numbers;
}

TEST_F(HfFolderTest, SpeaksGgufsWords) {
  write_model(config("llama", R"("rope_theta":5e5,"num_key_value_heads":1)"),
              embedding()
                  .add("model.layers.0.self_attn.q_proj.weight", "BF16", {4, 4}, 32)
                  .add("model.layers.0.post_attention_layernorm.weight", "F16", {4}, 8)
                  .add("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {1}, 4)
                  .add("lm_head.weight", "F32", {2, 4}, 32));
  write("generation_config.json", R"({"temperature":0.5,"top_k":20,"top_p":null,"do_sample":true})");
  const auto file = CheckpointFile::open(folder_);
  EXPECT_EQ(file->format(), "safetensors");
  EXPECT_EQ(file->get_string("general.architecture"), "llama");
  EXPECT_EQ(file->get_string("general.name"), folder_.filename().string());
  EXPECT_EQ(file->get_uint("llama.block_count"), 1u);
  EXPECT_EQ(file->get_uint("llama.attention.head_count_kv"), 1u);
  EXPECT_EQ(file->get_uint("llama.rope.dimension_count"), 2u);
  EXPECT_EQ(file->get_float("llama.rope.freq_base"), 5e5);
  EXPECT_EQ(file->get_float("llama.attention.layer_norm_rms_epsilon"), static_cast<double>(1e-5F));
  EXPECT_EQ(file->get_float("general.sampling.temp"), 0.5);
  EXPECT_EQ(file->get_uint("general.sampling.top_k"), 20u);
  EXPECT_FALSE(file->get_float("general.sampling.top_p"));
  EXPECT_THROW(file->get_uint("general.architecture"), Error);
  EXPECT_EQ(file->tensors().size(), 3u);  // neither the tied head nor what the config already says
  const Tensor* query = file->find("blk.0.attn_q.weight");
  ASSERT_NE(query, nullptr);
  EXPECT_EQ(query->type, TensorType::bf16);
  EXPECT_EQ(query->rope_order, RopeOrder::halves);
  EXPECT_NE(file->find("blk.0.ffn_norm.weight"), nullptr);
  EXPECT_EQ(file->find("token_embd.weight")->row_length(), 4u);
  EXPECT_EQ(file->parts().size(), 2u);
  touch_everything(*file);
}

TEST_F(HfFolderTest, GemmasNormsAreOnePlus) {
  write_model(config("gemma2", R"("query_pre_attn_scalar":16)"),
              embedding().add_floats("model.layers.0.pre_feedforward_layernorm.weight", {4}, {0, 1, -0.5F, 2}));
  const auto file = CheckpointFile::open(folder_);
  EXPECT_EQ(values(*file, "blk.0.ffn_norm.weight"), (std::vector<float>{1, 2, 0.5F, 3}));
  EXPECT_EQ(values(*file, "token_embd.weight")[1], 1);
  EXPECT_EQ(file->get_float("gemma2.attention.scale"), 0.25);
  write("config.json", config("gemma2", R"("layer_types":["sliding_attention","sliding_attention","full_attention"])"));
  EXPECT_NE(refusal().find("expected full attention in every second layer, file says every 3"), std::string::npos);
}

// In the names of transformers 4 and 5, with the keys that its makers' files leave out.
TEST_F(HfFolderTest, OfAModelThatSeesImagesTheTextPartIsRead) {
  for (const std::string prefix : {"language_model.model.", "model.language_model."}) {
    write_model(R"({"model_type":"gemma3","eos_token_id":[1,106],"text_config":{"hidden_size":4,"num_hidden_layers":1,"intermediate_size":6}})",
                SafetensorsBuilder()
                    .add_floats(prefix + "embed_tokens.weight", {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7})
                    .add_floats(prefix + "norm.weight", {4}, {0, 1, 2, 3})
                    .add("vision_tower.vision_model.head.weight", "F32", {4}, 16)
                    .add("model.multi_modal_projector.mm_soft_emb_norm.weight", "F32", {4}, 16));
    const auto file = CheckpointFile::open(folder_);
    EXPECT_EQ(values(*file, "output_norm.weight"), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(file->tensors().size(), 2u);
    EXPECT_EQ(file->get_uint("gemma3.attention.head_count"), 8u);
    EXPECT_EQ(file->get_float("gemma3.attention.scale"), 0.0625);
    EXPECT_EQ(file->get_ints("tokenizer.huggingface.eos_token_ids"), (std::vector<std::int64_t>{1, 106}));
  }
  write("config.json", R"({"model_type":"gemma3"})");
  EXPECT_EQ(refusal(), "[folder] config.json \"text_config\": expected the text model's config, file says nothing");
}

TEST_F(HfFolderTest, ExpertsBecomeOneTensor) {
  const auto experts = [](int last) {
    SafetensorsBuilder weights = embedding();
    for (const int expert : {last, 0}) {
      const auto value = static_cast<float>(expert);
      weights.add_floats("model.layers.0.block_sparse_moe.experts." + std::to_string(expert) + ".w1.weight", {1, 4},
                         {value, value, value, value + 5});
    }
    return weights;
  };
  write_model(config("mixtral", R"("num_local_experts":2,"num_experts_per_tok":1)"), experts(1));
  const auto file = CheckpointFile::open(folder_);
  EXPECT_EQ(file->get_uint("llama.expert_count"), 2u);
  EXPECT_EQ(values(*file, "blk.0.ffn_gate_exps.weight"), (std::vector<float>{0, 0, 0, 5, 1, 1, 1, 6}));
  EXPECT_EQ(file->find("blk.0.ffn_gate_exps.weight")->dims, (std::array<std::uint64_t, 4>{4, 1, 2, 1}));
  write_model(config("mixtral", R"("num_local_experts":2,"num_experts_per_tok":1)"), experts(2));
  EXPECT_EQ(refusal(), "[safetensors] tensor \"blk.0.ffn_gate_exps.weight\": expected the 2 experts of config.json, "
                       "folder has 2, the last of them number 2");
}

TEST_F(HfFolderTest, RopeIsReadInBothSpellings) {
  const std::string llama3 = R"("factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":16)";
  write_model(config("llama", R"("head_dim":8,"rope_theta":10,"rope_scaling":{"rope_type":"llama3",)" + llama3 + "}"), embedding());
  const std::vector<float> old = values(*CheckpointFile::open(folder_), "rope_freqs.weight");
  ASSERT_EQ(old.size(), 4u);
  EXPECT_EQ(old.back(), 8);  // turns less than once
  EXPECT_GT(old.front(), 1);
  EXPECT_LT(old.front(), 8);
  write_model(config("llama", R"("head_dim":8,"rope_parameters":{"rope_theta":10,"rope_type":"llama3",)" + llama3 + "}"), embedding());
  const auto file = CheckpointFile::open(folder_);
  EXPECT_EQ(values(*file, "rope_freqs.weight"), old);
  EXPECT_EQ(file->get_float("llama.rope.freq_base"), 10);
  EXPECT_FALSE(file->get_string("llama.rope.scaling.type"));

  write_model(config("gemma3_text", R"("rope_parameters":{"full_attention":{"rope_theta":1e6,"rope_type":"linear","factor":8},
      "sliding_attention":{"rope_theta":1e4}},"layer_types":["sliding_attention","full_attention"])"), embedding());
  const auto gemma = CheckpointFile::open(folder_);
  EXPECT_EQ(gemma->get_float("gemma3.rope.freq_base"), 1e6);
  EXPECT_EQ(gemma->get_float("gemma3.rope.freq_base_swa"), 1e4);
  EXPECT_EQ(gemma->get_string("gemma3.rope.scaling.type"), "linear");
  EXPECT_EQ(gemma->get_float("gemma3.rope.scaling.factor"), 8);
  EXPECT_EQ(gemma->get_uint("gemma3.attention.sliding_window_pattern"), 2u);
}

TEST_F(HfFolderTest, ShardsMustBeWhatTheIndexSays) {
  write("config.json", config("llama"));
  const auto norm = SafetensorsBuilder().add("model.norm.weight", "F32", {4}, 16);
  embedding().write(folder_ / "a.safetensors");
  norm.write(folder_ / "b.safetensors");
  const auto index = [&](const char* map) { write("model.safetensors.index.json", std::string(R"({"weight_map":)") + map + "}"); };
  index(R"({"model.embed_tokens.weight":"a.safetensors","model.norm.weight":"b.safetensors"})");
  const auto file = CheckpointFile::open(folder_);
  EXPECT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->parts().size(), 3u);

  index(R"({"model.embed_tokens.weight":"a.safetensors","model.norm.weight":"c.safetensors"})");
  EXPECT_NE(refusal().find("c.safetensors\": expected a readable file, there is none"), std::string::npos);
  index(R"({"model.embed_tokens.weight":"a.safetensors","model.norm.weight":"a.safetensors"})");
  EXPECT_EQ(refusal(), "[safetensors] tensor \"model.norm.weight\": expected it in \"a.safetensors\", as the index says, it isn't there");
  index(R"({"model.embed_tokens.weight":"a.safetensors"})");
  EXPECT_EQ(CheckpointFile::open(folder_)->tensors().size(), 1u);
  index(R"({"model.embed_tokens.weight":"../a.safetensors"})");
  EXPECT_NE(refusal().find("expected the name of a .safetensors file beside the index"), std::string::npos) << refusal();
  index("7");
  EXPECT_NE(refusal().find("\"weight_map\": expected an object, file says the number 7"), std::string::npos) << refusal();
  embedding().add("model.norm.weight", "F32", {4}, 16).write(folder_ / "a.safetensors");
  index(R"({"model.embed_tokens.weight":"a.safetensors","model.norm.weight":"b.safetensors"})");
  EXPECT_EQ(refusal(), "[safetensors] tensor \"model.norm.weight\": expected it where the index says, \"a.safetensors\" has it too");
}

TEST_F(HfFolderTest, WhatIsNotBuiltInIsNamed) {
  const auto refused = [&](const std::string& json, const SafetensorsBuilder& weights = embedding()) {
    write_model(json, weights);
    return refusal();
  };
  EXPECT_NE(refused(config("rwkv")).find("[folder] config.json \"model_type\": \"rwkv\" is not built in; of folders this engine reads: llama, "),
            std::string::npos);
  EXPECT_EQ(refused(config("llama", R"("hidden_act":"gelu")")),
            "[folder] config.json \"hidden_act\": expected \"silu\", file says \"gelu\", which is not built in");
  EXPECT_NE(refused(config("qwen2", R"("use_sliding_window":true)")).find("use_sliding_window"), std::string::npos);
  EXPECT_NE(refused(config("llama", R"("quantization_config":{"quant_method":"gptq"})")).find("file says \"gptq\""), std::string::npos);
  EXPECT_NE(refused(config("llama", R"("rope_scaling":{"type":"mrope"})")).find("file says \"mrope\""), std::string::npos);
  EXPECT_EQ(refused(config("llama"), embedding().add("model.norm.weight", "I8", {4}, 4)),
            "[safetensors] tensor \"model.norm.weight\": expected F32, F16, BF16, F8_E4M3 or F8_E5M2, file says I8");
  EXPECT_NE(refused(config("llama"), embedding().add("model.vision.weight", "F32", {4}, 16)).find("none of its tensors has this one"),
            std::string::npos);
  EXPECT_NE(refused(R"({"model_type":"llama","hidden_size":4,"num_attention_heads":2,"tie_word_embeddings":false})")
                .find("tensor \"lm_head.weight\": expected it"),
            std::string::npos);
  EXPECT_NE(refused(config("llama", R"("model_type":"qwen2")")).find("expected it once"), std::string::npos);
}

TEST_F(HfFolderTest, WhatIsNoModelSaysWhatToDo) {
  const std::string where = "[folder] \"" + folder_.string() + "\": expected ";
  const std::string expected = where + "model.safetensors or model.safetensors.index.json, ";
  EXPECT_EQ(refusal(), expected + "there is neither");
  write("pytorch_model.bin", "");
  EXPECT_NE(refusal().find("there is \"pytorch_model.bin\", a pickle, which runs as a program"), std::string::npos);
  write("model-00001-of-00002.safetensors", "");
  EXPECT_EQ(refusal(), expected + "there is \"model-00001-of-00002.safetensors\" alone");
  write("b.gguf", "");
  write("a.gguf", "");
  EXPECT_EQ(refusal(), expected + "there is the GGUF file \"a.gguf\": give its own path");
  write("model.safetensors", "");
  EXPECT_EQ(refusal(), where + "config.json beside the weights, there is none");
  try {
    CheckpointFile::open(folder_ / "model.safetensors");
    FAIL() << "a shard was taken for a model";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("got the file alone; give the folder's path"), std::string::npos);
  }
}

TEST_F(HfFolderTest, ATokenizerMayStandAlone) {
  write("tokenizer.json", R"({"model":{}})");
  write("tokenizer_config.json", R"({"model_max_length":1000000000000000019884624838656,"bos_token":"<s>",
      "eos_token":{"content":"</s>","lstrip":false},"pad_token":null,
      "chat_template":[{"name":"default","template":"D"},{"name":"tool_use","template":"T"}]})");
  write("special_tokens_map.json", R"({"bos_token":"<map>","unk_token":"<unk>"})");
  const auto file = CheckpointFile::open(folder_);
  EXPECT_NE(file->lacks_weights().find("there is neither"), std::string::npos);
  EXPECT_EQ(file->format(), "tokenizer files");
  EXPECT_TRUE(file->tensors().empty());
  EXPECT_EQ(file->get_string("tokenizer.huggingface.json"), R"({"model":{}})");
  EXPECT_EQ(file->get_string("tokenizer.chat_template"), "D");
  EXPECT_EQ(file->get_string("tokenizer.chat_template.tool_use"), "T");
  EXPECT_EQ(file->get_string("tokenizer.huggingface.bos_token"), "<map>");
  EXPECT_EQ(file->get_string("tokenizer.huggingface.eos_token"), "</s>");
  EXPECT_EQ(file->get_string("tokenizer.huggingface.unk_token"), "<unk>");
  EXPECT_FALSE(file->get_string("tokenizer.huggingface.pad_token"));
  touch_everything(*file);
}

TEST_F(HfFolderTest, AConfigThatSaysWhatEachTokenIsNeedsNoMap) {
  write("tokenizer.json", "{}");
  write("tokenizer_config.json", R"({"bos_token":"<s>","added_tokens_decoder":{"1":{"content":"<s>"}}})");
  write("special_tokens_map.json", R"({"bos_token":"<map>"})");
  EXPECT_EQ(CheckpointFile::open(folder_)->get_string("tokenizer.huggingface.bos_token"), "<s>");
  write("tokenizer_config.json", R"({"bos_token":7})");
  EXPECT_EQ(refusal(), "[folder] tokenizer_config.json \"bos_token\": expected an object, file says the number 7");
  write("tokenizer_config.json", R"({"bos_token":{}})");
  EXPECT_NE(refusal().find("\"bos_token\": expected a string, or an object with its \"content\""), std::string::npos);
  write("tokenizer_config.json", R"({"chat_template":[{"name":"a"}]})");
  EXPECT_NE(refusal().find("\"template\": expected a string, file says nothing"), std::string::npos);
}

TEST_F(HfFolderTest, TemplateFilesWin) {
  write("tokenizer.json", "{}");
  write("tokenizer_config.json", R"({"chat_template":"old"})");
  EXPECT_EQ(CheckpointFile::open(folder_)->get_string("tokenizer.chat_template"), "old");
  write("chat_template.jinja", "new");
  fs::create_directories(folder_ / "additional_chat_templates");
  write("additional_chat_templates/rag.jinja", "R");
  const auto file = CheckpointFile::open(folder_);
  EXPECT_EQ(file->get_string("tokenizer.chat_template"), "new");
  EXPECT_EQ(file->get_string("tokenizer.chat_template.rag"), "R");
}

TEST_F(HfFolderTest, AnAnswerEndsAsGenerationConfigSays) {
  write_model(config("llama", R"("eos_token_id":2)"), embedding());
  using Ids = std::vector<std::int64_t>;
  EXPECT_EQ(CheckpointFile::open(folder_)->get_ints("tokenizer.huggingface.eos_token_ids"), Ids{2});
  write("generation_config.json", R"({"eos_token_id":[5,3],"temperature":0.5,"do_sample":false})");
  const auto file = CheckpointFile::open(folder_);
  EXPECT_EQ(file->get_ints("tokenizer.huggingface.eos_token_ids"), (Ids{5, 3}));
  EXPECT_EQ(file->get_float("general.sampling.temp"), 0);
  write("generation_config.json", R"({"eos_token_id":"end"})");
  EXPECT_NE(refusal().find("[folder] generation_config.json \"eos_token_id\": expected a whole number"), std::string::npos);
}

// Codes 1.0, 1.125, -448 and the smallest above zero.
SafetensorsBuilder f8_weights(const std::string& scale, const std::vector<std::uint64_t>& shape, const std::vector<float>& values) {
  SafetensorsBuilder weights = embedding().add_bytes("model.layers.0.self_attn.q_proj.weight", "F8_E4M3", {2, 4},
                                                     {'\x38', '\x39', '\xfe', '\x01', '\x38', '\x39', '\xfe', '\x01'});
  return scale.empty() ? weights : weights.add_floats("model.layers.0.self_attn.q_proj." + scale, shape, values);
}

TEST_F(HfFolderTest, F8IsMultipliedByItsScale) {
  constexpr float kLeast = 0x1p-9F;
  const auto quantized = [](const char* json) { return config("llama", std::string(R"("quantization_config":)") + json); };
  const auto read = [&](const std::string& json, const SafetensorsBuilder& weights) {
    write_model(json, weights);
    return values(*CheckpointFile::open(folder_), "blk.0.attn_q.weight");
  };
  using Values = std::vector<float>;
  EXPECT_EQ(read(config("llama"), f8_weights("", {}, {})), (Values{1, 1.125F, -448, kLeast, 1, 1.125F, -448, kLeast}));
  EXPECT_EQ(read(quantized(R"({"quant_method":"fp8"})"), f8_weights("weight_scale_inv", {}, {2})),
            (Values{2, 2.25F, -896, 2 * kLeast, 2, 2.25F, -896, 2 * kLeast}));
  const char* by_row = R"({"quant_method":"compressed-tensors","format":"float-quantized"})";
  EXPECT_EQ(read(quantized(by_row), f8_weights("weight_scale", {2, 1}, {2, 0.5F})),
            (Values{2, 2.25F, -896, 2 * kLeast, 0.5F, 0.5625F, -224, kLeast / 2}));
  const char* by_block = R"({"quant_method":"fp8","weight_block_size":[1,3]})";
  EXPECT_EQ(read(quantized(by_block), f8_weights("weight_scale_inv", {2, 2}, {1, 2, 4, 8})),
            (Values{1, 1.125F, -448, 2 * kLeast, 4, 4.5F, -1792, 8 * kLeast}));
  const auto refused = [&](const char* json, const SafetensorsBuilder& weights) {
    write_model(quantized(json), weights);
    return refusal();
  };
  EXPECT_NE(refused(by_block, f8_weights("weight_scale_inv", {2, 1}, {1, 2})).find("expected 2 x 2, one a block"), std::string::npos);
  EXPECT_NE(refused(by_row, f8_weights("weight_scale", {3}, {1, 2, 3})).find("expected one value, or 2 x 1"), std::string::npos);
  EXPECT_NE(refused(by_row, f8_weights("", {}, {})).find("expected a scale beside it"), std::string::npos);
  EXPECT_NE(refused(by_row, embedding().add_floats("model.layers.0.mlp.up_proj.weight_scale", {1}, {1})).find("expected weights that it scales"),
            std::string::npos);
  EXPECT_NE(refused(R"({"quant_method":"compressed-tensors","format":"pack-quantized"})", embedding())
                .find("file says \"compressed-tensors\" \"pack-quantized\", which is not built in"), std::string::npos);
}

TEST_F(HfFolderTest, LayersThatGuessFurtherTokensAreLeftOut) {
  const std::string json = R"({"model_type":"deepseek_v3","hidden_size":4,"num_attention_heads":2,"num_hidden_layers":1,
      "tie_word_embeddings":true,"qk_rope_head_dim":2,"qk_nope_head_dim":2,"kv_lora_rank":2)";
  const SafetensorsBuilder weights = embedding().add("model.layers.1.eh_proj.weight", "F32", {4}, 16)
      .add("model.layers.0.self_attn.kv_a_proj_with_mqa.weight", "BF16", {4, 4}, 32);
  write_model(json + R"(,"num_nextn_predict_layers":1})", weights);
  const auto file = CheckpointFile::open(folder_);
  EXPECT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->find("blk.0.attn_kv_a_mqa.weight")->rope_order, RopeOrder::pairs);
  EXPECT_EQ(file->get_uint("deepseek2.attention.key_length"), 4u);
  EXPECT_EQ(file->get_uint("deepseek2.rope.dimension_count"), 2u);
  write_model(json + "}", weights);
  EXPECT_NE(refusal().find("\"model.layers.1.eh_proj.weight\": expected a name of model_type \"deepseek_v3\""), std::string::npos);
}

// Gates and ups in turns, codes of neighbours in a byte, scales apart.
TEST_F(HfFolderTest, ExpertsOfMxfp4) {
  const std::string prefix = "model.layers.0.mlp.experts.";
  const auto weights = [&](const std::string& scales) {
    std::string blocks;  // code (element + row) % 16
    for (int row = 0; row < 4; ++row)
      for (int byte = 0; byte < 16; ++byte) blocks += static_cast<char>((2 * byte + row) % 16 | (2 * byte + 1 + row) % 16 << 4);
    return embedding()
        .add_bytes(prefix + "gate_up_proj_blocks", "U8", {1, 4, 1, 16}, blocks)
        .add_bytes(prefix + "gate_up_proj_scales", "U8", {1, 4, scales.size() / 4}, scales);
  };
  const std::string json = config("gpt_oss", R"("num_local_experts":1,"layer_types":["sliding_attention"],
      "quantization_config":{"quant_method":"mxfp4"})");
  write_model(json, weights("\x7f\x80\x7f\x7e"));
  const auto file = CheckpointFile::open(folder_);
  EXPECT_EQ(file->find("blk.0.ffn_up_exps.weight")->type, TensorType::mxfp4);
  EXPECT_EQ(file->find("blk.0.ffn_up_exps.weight")->dims, (std::array<std::uint64_t, 4>{32, 2, 1, 1}));
  constexpr float kCodes[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, 0, -0.5F, -1, -1.5F, -2, -3, -4, -6};
  const auto expect = [&](const char* name, std::size_t first, float scale_0, float scale_1) {
    const std::vector<float> got = values(*file, name);
    for (std::size_t i = 0; i < 64; ++i)
      EXPECT_EQ(got.at(i), kCodes[(i % 32 + first + i / 32 * 2) % 16] * (i < 32 ? scale_0 : scale_1)) << name << i;
  };
  expect("blk.0.ffn_gate_exps.weight", 0, 1, 1);
  expect("blk.0.ffn_up_exps.weight", 1, 2, 0.5F);
  write_model(json, weights("\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f"));
  EXPECT_NE(refusal().find("gate_up_proj_scales\": expected U8, one a block, file says 1 x 4 x 2 of U8"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace couplet::formats
