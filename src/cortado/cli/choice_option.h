#pragma once

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <map>
#include <string>
#include <vector>

#include "cortado/base/error.h"

namespace cortado {

// Adds an option that takes one of a few names and sets `value` to what the name means. Refuses other names.
template <typename T>
CLI::Option* add_choice(CLI::App& command, const std::string& name, T& value,
                        std::map<std::string, T> choices, const std::string& description) {
  std::vector<std::string> names;
  for (const auto& [choice, stands_for] : choices) names.push_back(choice);
  const auto take = [&value, choices = std::move(choices)](const std::string& choice) {
    value = choices.at(choice);
  };
  return command.add_option_function<std::string>(name, take, description)->check(CLI::IsMember(names));
}

// Refuses what a function of the library refuses, with its message.
template <typename Check>
CLI::Validator accepted_by(Check check) {
  const auto message_of = [check](const std::string& text) -> std::string {
    try {
      check(text);
      return "";
    } catch (const UserError& error) {
      return error.what();
    }
  };
  return CLI::Validator(message_of, "");
}

}  // namespace cortado
