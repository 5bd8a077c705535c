#include "cortado/train/open_sources.h"

#include "cortado/base/error.h"

namespace cortado {
namespace {

bool brings_values(const Reader& reader) {
  return dynamic_cast<const InputReader*>(&reader) == nullptr &&
         dynamic_cast<const MemoryReader*>(&reader) == nullptr;
}

}  // namespace

OpenSources::OpenSources(DataNetwork& data) {
  for (auto& [layer, source] : data.sources()) {
    const Reader& reader = *data.reader(layer);
    held_.emplace(layer, Held{TopBuffers(reader.shapes()),
                              brings_values(reader) ? std::move(source) : BatchSource(), nullptr});
  }
}

std::map<std::string, BatchSource> OpenSources::sources() {
  std::map<std::string, BatchSource> sources;
  for (const auto& [layer, held] : held_) sources[layer] = [this, name = layer] { return load(name); };
  return sources;
}

std::vector<const float*> OpenSources::load(const std::string& layer) {
  Held& held = held_.at(layer);
  if (held.next && !held_back_.contains(layer)) {
    const std::vector<const float*> batch = held.next();
    for (size_t top = 0; top < batch.size(); ++top) {
      const std::span<float> to = held.tops.values(top);
      std::copy_n(batch[top], to.size(), to.data());
    }
  }
  return held.tops.batch(0).tensors;
}

std::span<float> OpenSources::values(const std::string& layer, int top) {
  return held_.at(layer).tops.values(static_cast<size_t>(top));
}

void OpenSources::feed(const std::string& layer, std::unique_ptr<Reader> reader) {
  Held& held = held_.at(layer);
  ensure(reader->shapes() == held.tops.shapes(), "a reader of other shapes than the layer's");
  held.reader = std::move(reader);
  held.next = [&held] { return held.reader->next().tensors; };
}

void OpenSources::take_feeds(OpenSources& from) {
  for (auto& [layer, held] : from.held_)
    if (held.reader && held.reader->shapes() == held_.at(layer).tops.shapes())
      feed(layer, std::move(held.reader));
}

OpenSources::Advance::Advance(OpenSources& sources, const std::set<std::string>& layers) : sources_(sources) {
  for (const auto& [layer, held] : sources_.held_)
    if (!layers.contains(layer)) sources_.held_back_.insert(layer);
}

}  // namespace cortado
