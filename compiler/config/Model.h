// Head configurations: from a model's config.json, or by a public model's name from coefs/models.csv.
#pragma once
#include "compiler/config/Csv.h"

namespace gdnc {

struct Model {
  std::string name;  // empty for a config.json
  std::string where; // what says its key dimension, for messages
  uint32_t keyHeads = 0, valueHeads = 0, keyDim = 0, valueDim = 0;
};

// Reads the text of a config.json with the keys of Hugging Face's models (linear_num_key_heads, linear_num_value_heads,
// linear_key_head_dim, linear_value_head_dim; at the top or in text_config) or of flash-linear-attention (num_heads,
// num_v_heads, head_dim, expand_v). `file` is named in messages. Throws ConfigError.
Model parseModel(const std::string &text, const std::string &file);

std::vector<Model> readModels(const std::string &path);

// The model seen by one of `ranks` tensor-parallel ranks. Throws ConfigError where they do not divide the heads.
Model divideHeads(const Model &model, uint32_t ranks);

} // namespace gdnc
