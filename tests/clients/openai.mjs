// OpenAI's own Node client, unchanged, against a server whose address is the first argument. Prints what it saw.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "any", maxRetries: 0 });
const parameters = { type: "object", properties: { city: { type: "string" } } };
const seen = {};

seen.models = (await client.models.list()).data.map((model) => model.id);

const { data, response } = await client.chat.completions
  .create({ model: "pane", messages: [{ role: "user", content: "Hi" }] })
  .withResponse();
seen.chat = [data.choices[0].message.content, data.choices[0].finish_reason, data.usage.total_tokens];
seen.turn = [response.headers.get("windowpane-session").slice(0, 4), response.headers.get("windowpane-turn")];

const stream = await client.chat.completions.create({
  model: "pane",
  messages: [{ role: "user", content: "Hi" }],
  stream: true,
  stream_options: { include_usage: true },
});
seen.streamed = ["", null];
for await (const chunk of stream) {
  seen.streamed[0] += chunk.choices[0]?.delta.content ?? "";
  seen.streamed[1] = chunk.usage?.total_tokens ?? null;
}

const ran = [];
const runner = client.chat.completions.runTools({
  model: "pane",
  messages: [{ role: "user", content: "Weather in Oslo?" }],
  tools: [
    {
      type: "function",
      function: {
        name: "weather",
        description: "Tells the weather.",
        parameters,
        parse: JSON.parse,
        function: ({ city }) => {
          ran.push(city);
          return "12 degrees, rain";
        },
      },
    },
  ],
});
seen.tools = [await runner.finalContent(), ran];

const first = await client.responses.create({ model: "pane", input: "Remember 7.", metadata: { session: "from node" } });
const events = [];
const second = client.responses.stream({ model: "pane", input: "Which number?", previous_response_id: first.id });
for await (const event of second) events.push(event.type);
seen.responses = [first.output_text, (await second.finalResponse()).output_text, events.at(0), events.at(-1)];

const tools = [{ type: "function", name: "weather", parameters, strict: false }];
const asked = await client.responses.create({ model: "pane", input: "Weather?", tools });
const call = asked.output.find((item) => item.type === "function_call");
const output = [{ type: "function_call_output", call_id: call.call_id, output: "sun" }];
const told = await client.responses.create({ model: "pane", input: output, previous_response_id: asked.id, tools });
seen.called = [call.name, call.arguments, told.output_text];

try {
  await client.chat.completions.create({ model: "nobody", messages: [{ role: "user", content: "Hi" }] });
} catch (error) {
  seen.error = [error.constructor.name, error.status, error.code, error.param];
}

console.log(JSON.stringify(seen));
