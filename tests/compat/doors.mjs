// Ask a server with the AI SDK, by all three protocols, and with Anthropic's client: node doors.mjs http://127.0.0.1:8470
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

globalThis.AI_SDK_LOG_WARNINGS = false;
const base = process.argv[2];
const openai = createOpenAI({ baseURL: `${base}/v1`, apiKey: "any" });
const anthropic = createAnthropic({ baseURL: `${base}/anthropic/v1`, apiKey: "any" });
const seen = {};
for (const [name, model] of [
  ["chat", (id) => openai.chat(id)],
  ["responses", (id) => openai.responses(id)],
  ["anthropic", (id) => anthropic(id)],
]) {
  const common = { model: model("pane"), prompt: "Hi?", maxRetries: 0, maxOutputTokens: 999 };
  const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: ({ city }) => `Rain in ${city}.` });
  const whole = await generateText(common);
  let streamed = "";
  for await (const piece of streamText(common).textStream) streamed += piece;
  const called = await generateText({ ...common, tools: { weather }, stopWhen: stepCountIs(3) });
  const failed = await generateText({ ...common, model: model("none") }).catch((error) => error);
  seen[name] = [whole.text, whole.usage.totalTokens > 0, streamed, called.text, called.steps.length];
  seen[name].push(APICallError.isInstance(failed) ? failed.statusCode : String(failed));
}
const client = new Anthropic({ baseURL: `${base}/anthropic`, apiKey: "any", maxRetries: 0 });
const body = { model: "pane", max_tokens: 999, messages: [{ role: "user", content: "Hi?" }] };
const whole = await client.messages.create(body);
const streamed = await client.messages.stream(body).finalText();
const failed = await client.messages.create({ ...body, model: "none" }).catch((error) => error);
const tools = [{ name: "weather", input_schema: { type: "object", properties: { city: { type: "string" } } } }];
const asked = await client.messages.create({ ...body, tools });
const call = asked.content[0];
const result = [{ type: "tool_result", tool_use_id: call.id, content: `Rain in ${call.input.city}.` }];
const turns = [...body.messages, { role: "assistant", content: asked.content }, { role: "user", content: result }];
const told = await client.messages.create({ ...body, tools, messages: turns });
seen.node = [whole.content[0].text, streamed, told.content[0].text, failed.constructor.name];
console.log(JSON.stringify(seen));
