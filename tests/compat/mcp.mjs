// Use Windowpane's MCP server with the TypeScript SDK, over pipes and over HTTP: node mcp.mjs '{"pipes": …, "http": …}'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { pipes, http } = JSON.parse(process.argv[2]);
const headers = (place) => (place.token ? { Authorization: `Bearer ${place.token}` } : {});
const transports = {
  pipes: () => new StdioClientTransport({ command: pipes.command, args: pipes.args, cwd: pipes.cwd }),
  http: () => new StreamableHTTPClientTransport(new URL(http[0].url)),
  token: () => new StreamableHTTPClientTransport(new URL(http[1].url), { requestInit: { headers: headers(http[1]) } }),
};
const seen = {};
for (const [name, transport] of Object.entries(transports)) {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport());
  const { tools } = await client.listTools();
  await client.callTool({ name: "set_relevant_context", arguments: { set_name: "ports", items: ["8470"] } });
  const got = await client.callTool({ name: "get_relevant_context", arguments: {} });
  const { resources } = await client.listResources();
  const rule = resources.find((resource) => resource.uri.includes("/rule/"));
  const read = await client.readResource({ uri: rule.uri });
  const wrong = await client.callTool({ name: "get_relevant_context", arguments: { session_id: "ses_none" } });
  seen[name] = [tools.length, JSON.parse(got.content[0].text), read.contents[0].text, Boolean(wrong.isError)];
  await client.close();
}
console.log(JSON.stringify(seen));
