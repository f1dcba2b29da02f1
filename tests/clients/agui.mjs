// AG-UI's own client, unchanged, against a server whose address is the first argument. Prints what it saw.
import { HttpAgent } from "@ag-ui/client";

const url = `${process.argv[2]}/api/agents/pane/ag-ui`;
const agent = new HttpAgent({ url, threadId: "thread-1" });
const tools = [
  {
    name: "weather",
    description: "Tells the weather.",
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
];
const runs = [];

async function run(parameters) {
  const events = [];
  const custom = [];
  let outcome;
  const result = await agent.runAgent(parameters, {
    onEvent({ event }) {
      if (event.type === "CUSTOM") custom.push([event.name, Object.keys(event.value)]);
      if (event.type === "RUN_FINISHED") outcome = event.outcome;
      if (event.type !== events.at(-1)) events.push(event.type);
    },
  });
  const added = result.newMessages.map((message) => [message.role, message.content ?? "", message.toolCalls?.length ?? 0]);
  runs.push({ events, custom, added, outcome });
  return outcome;
}

agent.addMessage({ id: "m1", role: "user", content: "Weather in Oslo?" });
await run({ runId: "r1", tools });
const call = agent.messages.at(-1).toolCalls[0];
agent.addMessage({ id: "m2", role: "tool", toolCallId: call.id, content: "12 degrees, rain" });
await run({ runId: "r2", tools });

agent.addMessage({ id: "m3", role: "user", content: "Read the file." });
const { interrupts } = await run({ runId: "r3" });
await run({ runId: "r4", resume: [{ interruptId: interrupts[0].id, status: "resolved", payload: { approved: true } }] });

agent.addMessage({ id: "m4", role: "user", content: "And fail." });
let failure = "";
try {
  await agent.runAgent({ runId: "r5" }, { onRunErrorEvent: ({ event }) => (failure = [event.code, event.message]) });
} catch (error) {
  failure ||= String(error);
}

console.log(JSON.stringify({ runs, failure, call: [call.function.name, call.function.arguments] }));
