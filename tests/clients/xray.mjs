// OpenAI's and Ollama's own Node clients, unchanged, against a server whose address is the first argument. Prints what
// they saw.
import { Ollama } from "ollama";
import OpenAI from "openai";

const openai = new OpenAI({ baseURL: `${process.argv[2]}/openai/v1`, apiKey: "sk-planted-key-0123456789", maxRetries: 0 });
const ollama = new Ollama({ host: `${process.argv[2]}/ollama` });
const messages = [{ role: "user", content: "Wie spät ist es?" }];
const seen = {};

seen.chat = await openai.chat.completions.create({ model: "gpt-4o", messages });
seen.chatStreamed = [];
for await (const chunk of await openai.chat.completions.create({ model: "gpt-4o", messages, stream: true })) {
  seen.chatStreamed.push(chunk);
}
seen.ollama = await ollama.chat({ model: "llama3.2", messages });
seen.ollamaStreamed = [];
for await (const chunk of await ollama.chat({ model: "llama3.2", messages, stream: true })) {
  seen.ollamaStreamed.push(chunk);
}
process.stdout.write(JSON.stringify(seen));
