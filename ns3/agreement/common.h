// SPDX-License-Identifier: GPL-2.0-only
// Shared code of both programs: lists on the command line, and results as JSON lines.
#pragma once

#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace measure {

// "500,900" is {500, 900}; the empty string is empty.
inline std::vector<double> ParseList(const std::string& text)
{
    std::vector<double> numbers;
    std::stringstream stream(text);
    for (std::string item; std::getline(stream, item, ',');)
        numbers.push_back(std::stod(item));
    return numbers;
}

// One JSON object on one line of standard output. Names and texts must need no escapes.
class JsonLine {
public:
    ~JsonLine() { std::cout << '{' << fields.str() << '}' << std::endl; }

    template <typename Number>
    JsonLine& Add(const std::string& name, Number value)
    {
        Name(name) << value;
        return *this;
    }

    JsonLine& AddText(const std::string& name, const std::string& value)
    {
        Name(name) << '"' << value << '"';
        return *this;
    }

private:
    std::ostream& Name(const std::string& name)
    {
        fields << (fields.tellp() > 0 ? "," : "") << '"' << name << "\":";
        return fields;
    }

    std::ostringstream fields;
};

} // namespace measure
