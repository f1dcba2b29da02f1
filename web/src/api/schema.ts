// Generated from the server's OpenAPI document by `make types`.

/** An item that could be in this session and is not, nor can it be selected for it: why. */
export type Absent = {
  type: "rule" | "reference" | "tool"
  name: string
  server: string | null
  reason: string
  code: "removed" | "became_always"
}

/** Structured progress that is not conversation content, materialised as a message so it keeps its place in the sequence. Stands alone rather than composing BaseMessage, because its content is an object rather than a string. */
export type ActivityMessage = {
  subagentRunId?: string | null
  id: string
  role?: "activity"
  activityType: string
  content: Record<string, unknown>
  metadata?: Record<string, unknown> | null
  [more: string]: unknown
}

/** The new name of an agent. */
export type AgentChange = {
  name: string
}

/** The session was given another agent. `items` are those of the session from then on. Turns before it keep what they were given. `servers` are the tool servers of the agent that were ready. */
export type AgentChanged = {
  agent: string
  items: SessionItem[]
  servers: string[]
  actor: "user" | "model" | "system"
  type: "session.agent"
}

/** The session was given another agent. `items` are those of the session from then on. Turns before it keep what they were given. `servers` are the tool servers of the agent that were ready. */
export type AgentChangedEvent = {
  seq: number
  at: string
  agent: string
  items: SessionItem[]
  servers: string[]
  actor: "user" | "model" | "system"
  type: "session.agent"
}

/** What a stream of an agent sends. */
export type AgentEvent = FilesChanged | ProblemsNow | ServerNow | IndexingNow | AgentGone

/** The agent's folder is no more, and nothing follows. */
export type AgentGone = {
  type: "agent.deleted"
}

/** Every agent, in order; the first is the one that a session gets by default. */
export type AgentList = {
  agents: AgentSummary[]
}

/** One agent. */
export type AgentRow = {
  agent: string
  sessions: number
  spent: Spent
  quality: Quality
}

/** The agent's defaults for its sessions. */
export type AgentSettings = {
  model: string
  temperature: number | null
  top_p: number | null
  max_output_tokens: number
  max_chat_turns: number
  tool_permission: "always" | "never" | "tool"
  mode: "normal" | "thinking" | "research"
  context_window: number | null
  prices: Record<string, ModelPrice>
  search: Record<string, unknown>
  cache: "auto" | "stable" | "fresh"
  memory: Record<string, unknown>
  working_context: boolean
  finders: boolean
  strict_tools: boolean
  inputs: ("image" | "pdf" | "text")[] | null
}

/** An agent in a list. `problems` counts what is wrong in its folder. `questions` are some to begin with. */
export type AgentSummary = {
  name: string
  description: string
  model: string
  rules: number
  references: number
  servers: number
  problems: number
  questions: string[]
}

/** An agent as its folder says it now. */
export type AgentView = {
  name: string
  description: string
  folder: string
  settings: AgentSettings
  counts: ItemCounts
  servers: ServerView[]
  problems: Problem[]
}

/** A suggestion that was applied: which file was changed, its new revision, and what undoes it there. */
export type Applied = {
  agent: string
  ref: ItemRef
  file: string
  revision: string
  undo: Edit
}

/** A person decided about waiting calls, by call id. */
export type ApprovalDecided = {
  turn: number
  decisions: Record<string, "allow_once" | "allow_session" | "deny">
  actor: "user" | "model" | "system"
  type: "approval.decided"
}

/** A person decided about waiting calls, by call id. */
export type ApprovalDecidedEvent = {
  seq: number
  at: string
  turn: number
  decisions: Record<string, "allow_once" | "allow_session" | "deny">
  actor: "user" | "model" | "system"
  type: "approval.decided"
}

/** Tool calls that a person was asked about. */
export type ApprovalMessage = {
  tool_call_approvals: ToolCallApproval[]
  turn: number | null
  seq: number
  at: string
  role: "approval"
}

/** Tool calls wait for a person. */
export type ApprovalRequested = {
  turn: number
  calls: ToolCall[]
  type: "approval.requested"
}

/** Tool calls wait for a person. */
export type ApprovalRequestedEvent = {
  seq: number
  at: string
  turn: number
  calls: ToolCall[]
  type: "approval.requested"
}

/** A message from the agent. Content is optional because a turn may consist only of tool calls. */
export type AssistantMessageInput = {
  subagentRunId?: string | null
  id: string
  role?: "assistant"
  name?: string | null
  encryptedValue?: string | null
  metadata?: Record<string, unknown> | null
  content?: string | null
  toolCalls?: ToolCallInput[] | null
  [more: string]: unknown
}

/** An answer. `request` names the record of what the model was given; None when it was not recorded. */
export type AssistantMessage = {
  model_reply: ModelReply
  request: string | null
  outcome: "completed" | "failed" | "cancelled" | "interrupted"
  sources: Source[]
  related: string[]
  turn: number | null
  seq: number
  at: string
  role: "assistant"
}

/** A file of a session. `media_type` is what its bytes are, `size` how many there are. `blob` names its bytes in base64. `text` names the words that were read from it; None for an image and for a document without words. `width` and `height` are those of an image in pixels, `pages` those of a PDF. */
export type AttachmentInput = {
  name: string
  media_type: string
  size: number
  blob: string
  text?: string | null
  width?: number
  height?: number
  pages?: number
}

/** A file of a session. `media_type` is what its bytes are, `size` how many there are. `blob` names its bytes in base64. `text` names the words that were read from it; None for an image and for a document without words. `width` and `height` are those of an image in pixels, `pages` those of a PDF. */
export type Attachment = {
  name: string
  media_type: string
  size: number
  blob: string
  text: string | null
  width: number
  height: number
  pages: number
}

/** An audio part. */
export type AudioPart = {
  type?: "audio"
  id?: string | null
  source: DataSource | UrlSource | FileSource
  metadata?: unknown | null
  [more: string]: unknown
}

/** What the breaks at one item, part or block cost together. `cost_usd` is null when none of it is known. */
export type BlamedItem = {
  name: string
  breaks: number
  lost_tokens: number
  cost_usd: string | null
}

/** Where a session that was forked began: before which turn of which session. Its events up to `seq` are copies: what they tell happened in that session. Zero: an earlier version noted nothing. */
export type Branch = {
  session: string
  turn: number
  seq: number
}

/** An item that is not where the test wants it, and why. */
export type Breach = {
  ref: ItemRef
  broke: "must" | "must_not" | "unexpected" | "unknown"
  reason: string
}

/** The room there was, and how much of it was taken, in tokens. `token_factor` is how many tokens of the model one of our own count has been so far: what is counted is divided into the window by it. `pieces_tokens` is what all pieces could take together, by our count; None in records that do not say. */
export type Budget = {
  window_tokens: number
  reply_tokens: number
  used_tokens: number
  window_source: string
  pieces_tokens: number | null
  token_factor: number
}

/** The provider read much less from its cache than the bodies let expect, and why that may be. */
export type CacheCollapse = {
  missing_tokens: number
  reason: string
  cost_usd: string | null
}

/** The calls of a session as the provider's cache saw them, and what broke the prefix, the dearest first. */
export type CacheReport = {
  calls: CallCache[]
  read_tokens: number
  written_tokens: number
  plain_tokens: number
  lost_tokens: number
  lost_usd: string | null
  blamed: BlamedItem[]
}

/** Candidates whose score was from `low` up to `low` + 0.1, and what share of them was needed. */
export type CalibrationStep = {
  low: number
  candidates: number
  needed: number
  share: number | null
}

/** What a call read from the provider's cache, wrote to it, and paid in full: null when it reported no usage. `expected_tokens` are those that the provider should have read; null when the body is not known. */
export type CallCache = {
  call: CallView
  read_tokens: number | null
  written_tokens: number | null
  plain_tokens: number | null
  expected_tokens: number | null
  broke: PrefixBreak | null
  collapse: CacheCollapse | null
}

/** Two calls of a session side by side, part by part. `same_bytes` counts from the beginning of the bodies, `same_tokens` those of the parts that the provider reads first and that are the same. `tokens_by_kind` is the difference; kinds that take as much as before are not in it. */
export type CallComparison = {
  before: CallView
  after: CallView
  before_tokens: number
  after_tokens: number
  same_bytes: number
  same_tokens: number
  changes: CallPartChange[]
  tokens_by_kind: Record<string, number>
}

/** An HTTP request to a provider ended. `address` is where it went, and `price` what the agent says that the model costs, if it says so: with `usage` they tell the cost. `counted_tokens` is our own count of what was sent, `tools_tokens` of them for tools, also where the model is not shown any. `status` is None when no answer began; `usage` is None when the provider reported none. `output_unknown` tells that a whole answer came with a report of its input alone; an answer that broke off counts as far as it was reported. `reason` says what went wrong, in a few words, without keys. `answer` names the blob with what was answered (`FoldedReply`); None where the events of the turn say that. */
export type CallEnded = {
  id: string
  turn: number | null
  purpose: "answer" | "summary" | "embedding" | "sampling" | "count" | "helper"
  model: string
  address: string
  price: ModelPrice | null
  counted_tokens: number
  tools_tokens: number
  outcome: "complete" | "cut" | "error"
  status: number | null
  first_byte_ms: number | null
  duration_ms: number
  usage: Usage | null
  output_unknown: boolean
  reason: string
  answer: string | null
  type: "call.ended"
}

/** An HTTP request to a provider ended. `address` is where it went, and `price` what the agent says that the model costs, if it says so: with `usage` they tell the cost. `counted_tokens` is our own count of what was sent, `tools_tokens` of them for tools, also where the model is not shown any. `status` is None when no answer began; `usage` is None when the provider reported none. `output_unknown` tells that a whole answer came with a report of its input alone; an answer that broke off counts as far as it was reported. `reason` says what went wrong, in a few words, without keys. `answer` names the blob with what was answered (`FoldedReply`); None where the events of the turn say that. */
export type CallEndedEvent = {
  seq: number
  at: string
  id: string
  turn: number | null
  purpose: "answer" | "summary" | "embedding" | "sampling" | "count" | "helper"
  model: string
  address: string
  price: ModelPrice | null
  counted_tokens: number
  tools_tokens: number
  outcome: "complete" | "cut" | "error"
  status: number | null
  first_byte_ms: number | null
  duration_ms: number
  usage: Usage | null
  output_unknown: boolean
  reason: string
  answer: string | null
  type: "call.ended"
}

/** Calls in the order in which they were sent, and what they used together. The sums are of the calls whose usage or price is known; the other calls are counted by `without_usage` and `without_price`. A call to a built-in model is neither: no provider reports its usage, and it is free. */
export type CallList = {
  calls: CallView[]
  usage: Usage
  cost_usd: string | null
  without_usage: number
  without_price: number
}

/** What became of a part of a body. `tokens` is how many it takes more, or less; `diff` is a unified diff. */
export type CallPartChange = {
  kind: "tool" | "system" | "environment" | "instructions" | "skills" | "mcp" | "reminder" | "billing" | "message" | "reply" | "thinking" | "call" | "result" | "attachment" | "setting"
  name: string
  happened: "entered" | "left" | "changed" | "moved"
  tokens: number
  diff: string
}

/** One call whole: as built, and as sent. `messages` and `tools` are as built; the last `added` messages are new since the call before. `message_tokens` is our own count of each message. `head` and `body` are as sent, null when the wire was not seen; `erased` tells that the body was kept and has been erased. `spans` say whose each stretch of the body is, and `changes` what the client library made different. `answer` is what a recorded program was answered; null: the turn's messages say it. `parts` are what the body is made of. */
export type CallRecord = {
  call: CallView
  messages: RequestMessage[]
  message_tokens: number[]
  added: number
  tools: OfferedTool[]
  head: WireHead | null
  sha256: string
  body: string | null
  erased: boolean
  spans: WireSpan[]
  changes: WireChange[]
  answer: FoldedReply | null
  parts: SentPart[]
}

/** An HTTP request went to a provider. `id` ties it to its end. `turn` is None for a call that belongs to no turn, `step` counts a turn's model calls from 1, `attempt` the tries of one step. `head` names the blob with method, address and headers, keys taken out; `body` names the blob from which the bytes are put together again, whose SHA-256 and size follow. `encoding` is how the body was compressed on the wire; what is kept, measured and hashed is what it said. `seen` is False for a call that was read from a log or a trace: the body is put together from what that tells. */
export type CallSent = {
  id: string
  turn: number | null
  step: number
  attempt: number
  purpose: "answer" | "summary" | "embedding" | "sampling" | "count" | "helper"
  model: string
  head: string
  body: string
  sha256: string
  size: number
  encoding: string
  seen: boolean
  type: "call.sent"
}

/** An HTTP request went to a provider. `id` ties it to its end. `turn` is None for a call that belongs to no turn, `step` counts a turn's model calls from 1, `attempt` the tries of one step. `head` names the blob with method, address and headers, keys taken out; `body` names the blob from which the bytes are put together again, whose SHA-256 and size follow. `encoding` is how the body was compressed on the wire; what is kept, measured and hashed is what it said. `seen` is False for a call that was read from a log or a trace: the body is put together from what that tells. */
export type CallSentEvent = {
  seq: number
  at: string
  id: string
  turn: number | null
  step: number
  attempt: number
  purpose: "answer" | "summary" | "embedding" | "sampling" | "count" | "helper"
  model: string
  head: string
  body: string
  sha256: string
  size: number
  encoding: string
  seen: boolean
  type: "call.sent"
}

/** How the model is called. None leaves the choice to the provider. `price` is what the agent says that the model costs; it is not sent. `cache` is how the request is put together, `cache_key` what requests that share a beginning have in common. `additions` is how the model is given tools in the middle of a conversation; None: it has one list of tools. `allowed_tools` are the names of the tools that may be called, where not all that stand in the prompt may. `inputs` are the files that the model takes as they are. `tools_shown` is False where the reports of earlier calls told that the model's server leaves tools out of the prompt: then they count for nothing. */
export type CallSettings = {
  model: string
  temperature: number | null
  top_p: number | null
  max_output_tokens: number | null
  mode: "normal" | "thinking" | "research"
  reply_options: ReplyOptions
  price: ModelPrice | null
  cache: "stable" | "fresh"
  cache_key: string
  additions: "by_reference" | "with_definitions" | null
  allowed_tools: string[] | null
  inputs: ("image" | "pdf" | "text")[]
  tools_shown: boolean
}

/** One model call. `residual_tokens` is how many input tokens the provider counted beyond ours; null: it said none. `cost_usd` is null when the model has no known price. */
export type CallUsage = {
  model: string
  counted_tokens: number
  reported_tokens: number | null
  residual_tokens: number | null
  usage: Usage
  latency_ms: number
  cost_usd: string | null
}

/** One call to a provider. `number` counts the calls of the list from 1, `step` the model calls of the turn, `attempt` the tries of a step. `seen` is false when the bytes were not seen on the wire: the model runs in this process, or its client takes no transport of ours. `built_in` tells of a model of Windowpane's own that nothing was sent, that no provider reports usage and that it is free. `usage` is null when the provider reported none. Input of 0 was not reported; of the output `output_unknown` tells that. `cost_usd` is null when any of these or the price is not known. `counted_tokens` is our own count of what was built. */
export type CallView = {
  number: number
  id: string
  turn: number | null
  step: number
  attempt: number
  purpose: "answer" | "summary" | "embedding" | "sampling" | "count" | "helper"
  model: string
  started_at: string
  outcome: "complete" | "cut" | "error" | "retried" | "running" | "lost"
  seen: boolean
  size: number
  status: number | null
  first_byte_ms: number | null
  duration_ms: number | null
  usage: Usage | null
  output_unknown: boolean
  built_in: boolean
  cost_usd: string | null
  counted_tokens: number | null
  reason: string
}

/** A tool that the caller runs itself. `parameters` is the JSON schema of its arguments. */
export type CallerTool = {
  name: string
  description?: string
  parameters?: Record<string, JsonValue>
}

/** A running turn was asked to stop. */
export type CancelRequested = {
  turn: number
  actor: "user" | "model" | "system"
  type: "cancel.requested"
}

/** A running turn was asked to stop. */
export type CancelRequestedEvent = {
  seq: number
  at: string
  turn: number
  actor: "user" | "model" | "system"
  type: "cancel.requested"
}

/** An `agent` item that was considered for this request and left out. */
export type Candidate = {
  type: "rule" | "reference" | "tool"
  name: string
  server: string | null
  reason: string
  code: string
  evidence: Evidence | null
}

/** An item that entered the prompt in an earlier turn and still stands there. `turn` is the one whose message it was for, `step` the model call that asked for it, 0 where none did. `place` is where it stands: 0 at the head of the history, else behind what was said before that turn. `used` is the last turn that selected or called it. */
export type CarriedItem = {
  type: "rule" | "reference" | "tool"
  name: string
  server: string | null
  turn: number
  step: number
  place: number
  used: number
  reason: string
  tokens: number
  hash: string
  version: string
  offered_name: string | null
}

/** What a request changes about what is carried. `again` are carried items that were selected again. `moved` are tools that stand at the head of the history from now on. `rent_tokens` is what carrying idle items has cost since the last re-base, this request included. */
export type CarryChange = {
  model: string
  through_seq: number
  prefix: SentPrefix
  entered: CarriedItem[]
  again: ItemRef[]
  moved: ItemRef[]
  dropped: ItemRef[]
  rebase: Rebase | null
  rent_tokens: number
}

/** What would have turned a decision round, in words and value by value: everything in it, and nothing less. `search` are the search settings in it, as a replay and `agent.yaml` take them; `tokens` is how much larger the window would have to be. */
export type Change = {
  effect: "includes" | "leaves_out" | "completes"
  text: string
  needs: Need[]
  search: Record<string, Record<string, unknown>>
  tokens: number
}

/** One file that is not as it was. Line counts are null for what is not text. */
export type ChangedFile = {
  path: string
  old_path: string | null
  status: "added" | "deleted" | "modified" | "renamed" | "copied" | "type_changed" | "unmerged" | "untracked"
  added: number | null
  deleted: number | null
}

/** A session after a change. `reply` says what became of the working context, `warnings` what looks wrong in it. */
export type ChangedSession = {
  id: string
  name: string
  title: string
  agent: string
  origin: Origin | null
  owner: string
  settings: SessionSettings
  items: SessionItem[]
  excluded: ItemRef[]
  rules: string[]
  references: string[]
  tools: ToolName[]
  context: Record<string, string[]>
  meta: SessionMeta
  observed: string[]
  fetched: FetchedCounts
  summary: Summary | null
  message_count: number
  turn_count: number
  last_turn: number
  token_count: number
  seq: number
  created_at: string | null
  updated_at: string | null
  open_turn: OpenTurnView | null
  branch_of: Branch | null
  own_references: OwnReference[]
  reply: string
  warnings: string[]
}

/** What filters can be set to: everything that the owner's turns have. */
export type Choices = {
  agents: string[]
  models: string[]
  first_day: string | null
  last_day: string | null
}

/** Items that were of use together, and the turns that they were of use in, the most similar first. */
export type Combination = {
  items: SharedItem[]
  turns: SimilarTurn[]
  times: number
  similarity: number
}

/** Two turns side by side. `tokens_by_part` is the difference; parts that take as much as before are not in it. */
export type Comparison = {
  before: Side
  after: Side
  items: ItemChange[]
  parts: PartChange[]
  tokens: number
  tokens_by_part: Record<string, number>
  cost_usd: string | null
  prefix: Prefix
}

/** A named piece of ambient information given to the agent for the run, distinct from the conversation. */
export type Context = {
  description: string
  value: string
  [more: string]: unknown
}

/** One turn's memory. `message_count` counts all stored messages, `window_count` those that were sent whole. */
export type ContextDebug = {
  conversation_context: string
  message_count: number
  window_count: number
  has_summary: boolean
  context_length: number
  band: "short" | "medium" | "large" | "very large"
  estimated_tokens: number
  recent_sources_used: string[]
  available_related_documents: string[]
  warnings: string[]
}

/** One item of a request: how it came in, what it cost, and what became of it. `found` is set for an item that the model asked for; it reached the model after the step that is named there. `since` is the turn since which a selected item stands in the prompt; None: it enters with this request. */
export type ContextItem = {
  type: "rule" | "reference" | "tool"
  name: string
  server: string | null
  include_mode: "always" | "manual" | "agent"
  status: "used" | "truncated" | "missing" | "over_budget" | "not_permitted" | "server_down" | "disabled"
  reason: string
  tokens: number
  hash: string | null
  version: string
  priority: number | null
  evidence: Evidence | null
  offered_name: string | null
  found: Found | null
  since: number | null
}

/** One test, and where it stands. `may` is None when anything else may be selected too. */
export type ContextTest = {
  file: string
  line: number
  name: string
  message: string
  history: Utterance[]
  added: ItemRef[]
  settings: Record<string, unknown>
  must: ItemRef[]
  may: ItemRef[] | null
  must_not: ItemRef[]
}

/** An agent's tests, and the files or entries that cannot be used. */
export type ContextTests = {
  tests: ContextTest[]
  problems: Problem[]
}

/** A limit, and how much of it is used. `unpriced_calls` are calls of models that have no known price; they are not in `spent_usd`, so that may be too low. */
export type CostLimitView = {
  period: "day" | "month"
  limit_usd: string
  spent_usd: string
  unpriced_calls: number
  resets_at: string
}

/** The limits on what an owner's model calls may cost; none when nothing is limited, and then nothing is counted. */
export type CostLimitsView = {
  limits: CostLimitView[]
}

/** Everything at once. `behind` is how many sessions have turns that are not counted yet: ask again for them. Lists are ordered by what matters: days in time, models, agents, parts and items by tokens, sources by use. */
export type Dashboard = {
  filters: Filters
  as_of: string
  behind: number
  sessions: number
  spent: Spent
  quality: Quality
  prefix: PrefixKept
  days: DayRow[]
  models: ModelRow[]
  agents: AgentRow[]
  purposes: PurposeRow[]
  parts: PartRow[]
  items: ItemRow[]
  scores: ScoreStep[]
  latency: StageRow[]
  sources: SourceRow[]
  rebases: RebaseRow[]
  patterns: Patterns
  storage: Storage
  choices: Choices
}

/** Bytes carried inline. */
export type DataSource = {
  type?: "data"
  value: string
  mimeType: string
  [more: string]: unknown
}

/** One day, in UTC: sessions that had their first turn on it, and those that had any. Empty days are not listed. */
export type DayRow = {
  day: string
  sessions: number
  active_sessions: number
  spent: Spent
  quality: Quality
  prefix: PrefixKept
}

/** What a person decided, by call id. */
export type Decisions = {
  decisions: Record<string, "allow_once" | "allow_session" | "deny">
}

/** A little more of the answer that is being written. */
export type DeltaEvent = {
  turn: number
  text: string
  kind: "text" | "thinking"
  type: "reply.delta"
}

/** Instructions from the application developer. */
export type DeveloperMessage = {
  subagentRunId?: string | null
  id: string
  role?: "developer"
  name?: string | null
  encryptedValue?: string | null
  metadata?: Record<string, unknown> | null
  content: string
  [more: string]: unknown
}

/** What changed below a folder since `base`. `patch` is a unified diff; `truncated` says that not all of it is here. Files that git does not know are in `files` with the status `untracked`, and not in the patch. */
export type Diff = {
  repository: string
  base: string
  files: ChangedFile[]
  patch: string
  truncated: boolean
}

/** What is to be different. With nothing in it, the selection is run again as it was. */
export type Difference = {
  search?: Record<string, JsonValue>
  query?: string | null
  items?: ItemText[]
}

/** A document part. */
export type DocumentPart = {
  type?: "document"
  id?: string | null
  source: DataSource | UrlSource | FileSource
  metadata?: unknown | null
  [more: string]: unknown
}

/** Search settings by name, for rules and references (`text`) and for tools (`tool`). */
export type DomainChanges = {
  text?: Record<string, JsonValue>
  tool?: Record<string, JsonValue>
}

/** A message that is not sent. */
export type Draft = {
  content: string
  attachments?: FileBody[]
}

/** An item that stood in the prompt before and left with this request, and why. */
export type DroppedItem = {
  type: "rule" | "reference" | "tool"
  name: string
  server: string | null
  turn: number
  tokens: number
  reason: string
}

/** Settings of an item and what they become: `include` (a mode) and `enabled`; null takes one away. */
export type Edit = {
  ref: ItemRef
  settings: Record<string, string | boolean | null>
}

/** Settings of an item and what they become: `include` and, but for tools, `enabled`. Null takes one away. */
export type EditBody = {
  ref: ItemRefInput
  settings: Record<string, string | boolean | null>
}

/** What a folder holds under a name. A link is what it leads to, if that lies in a root, and else `other`. */
export type Entry = {
  name: string
  path: string
  kind: "file" | "folder" | "other"
  size: number
  modified_at: string
}

/** What stood here was erased for good. */
export type Erased = {
  type: "erased"
}

/** What stood here was erased for good. */
export type ErasedEvent = {
  seq: number
  at: string
  type: "erased"
}

/** A session after a message was erased. `remains` says, in plain words, what has the same text and is kept. */
export type ErasedSession = {
  id: string
  name: string
  title: string
  agent: string
  origin: Origin | null
  owner: string
  settings: SessionSettings
  items: SessionItem[]
  excluded: ItemRef[]
  rules: string[]
  references: string[]
  tools: ToolName[]
  context: Record<string, string[]>
  meta: SessionMeta
  observed: string[]
  fetched: FetchedCounts
  summary: Summary | null
  message_count: number
  turn_count: number
  last_turn: number
  token_count: number
  seq: number
  created_at: string | null
  updated_at: string | null
  open_turn: OpenTurnView | null
  branch_of: Branch | null
  own_references: OwnReference[]
  remains: string[]
}

/** A turn that failed, with the next step for the user. It is never sent to a model. */
export type ErrorMessage = {
  content: string
  code: string
  partial: string
  request: string | null
  turn: number | null
  seq: number
  at: string
  role: "error"
}

/** How an agent's selection does with its settings: on all questions, on each domain, and by score. */
export type Evaluation = {
  agent: string
  search: Record<string, unknown>
  whole: Measure
  by_domain: Record<string, Measure>
  calibration: CalibrationStep[]
  wrong: Wrong[]
}

/** What decided about one item that could have been selected. `score` is calibrated and means the same for every query, between 0 and 1. `meaning` and `words` are the two measurements behind it; None where one was not taken. `rank` counts from 1. */
export type Evidence = {
  score: number
  meaning: number | null
  words: number | null
  rank: number | null
  passage: Passage | null
  cut_off: number | null
  floor: number | null
}

/** Why an item was in a request or not. `changes` would have turned that round, the smallest first. `tokens` is what all of the item takes, None when that is not known. `compared` is how many candidates its score was ranked among. `mode` is how the item came in, or else how the agent includes it. `degraded` says what was less good than it should be in the request that its score comes from. */
export type Explanation = {
  ref: ItemRef
  included: boolean
  fate: "used" | "truncated" | "missing" | "over_budget" | "not_permitted" | "server_down" | "disabled" | "left_out" | "not_in_session" | "carried"
  mode: "always" | "manual" | "agent" | null
  code: string
  reason: string
  evidence: Evidence | null
  compared: number
  tokens: number | null
  room: RoomState
  changes: Change[]
  degraded: string[]
}

/** Everything that the agent had at the time of the turn, and why it was in the request or not. */
export type ExplanationList = {
  items: Explanation[]
}

/** An event in its place, as in the log. */
export type ExportedEvent = {
  seq: number
  at: string
  event: SessionCreated | SessionUpdated | AgentChanged | ItemAdded | ItemRemoved | ItemReadmitted | ReferenceAdded | ReferenceRemoved | ServerArrived | MessageAdded | MessageRemoved | TurnStarted | RequestBuilt | CallSent | CallEnded | ModelReplied | ToolReturned | ApprovalRequested | ApprovalDecided | QuestionAsked | QuestionAnswered | ModelSampled | CancelRequested | TurnFinished | SummaryMade | FetchedAdded | FetchedCleared | SessionContext | HistoryCleared | Erased
}

/** One page or one search result. `content` is at most `MAX_CHARACTERS` long, the mark of a cut included. */
export type FetchedInput = {
  kind: "web_search" | "page"
  url: string
  content: string
  title?: string
  site_name?: string
  query?: string
}

/** One page or one search result. `content` is at most `MAX_CHARACTERS` long, the mark of a cut included. */
export type Fetched = {
  kind: "web_search" | "page"
  url: string
  content: string
  title: string
  site_name: string
  query: string
}

/** Pages or search results came in. One that is there already is replaced. */
export type FetchedAdded = {
  items: Fetched[]
  actor: "user" | "model" | "system"
  type: "fetched.added"
}

/** Pages or search results came in. One that is there already is replaced. */
export type FetchedAddedEvent = {
  seq: number
  at: string
  items: Fetched[]
  actor: "user" | "model" | "system"
  type: "fetched.added"
}

/** Fetched context was erased: of one kind, or all of it. `erased` names the blobs that were erased with it. */
export type FetchedCleared = {
  kind: "web_search" | "page" | null
  erased: string[]
  actor: "user" | "model" | "system"
  type: "fetched.cleared"
}

/** Fetched context was erased: of one kind, or all of it. `erased` names the blobs that were erased with it. */
export type FetchedClearedEvent = {
  seq: number
  at: string
  kind: "web_search" | "page" | null
  erased: string[]
  actor: "user" | "model" | "system"
  type: "fetched.cleared"
}

/** How much fetched context there is, by kind. */
export type FetchedCounts = {
  web_search: number
  page: number
}

/** Pages or search results that were fetched elsewhere. */
export type FetchedIn = {
  items: FetchedInput[]
}

/** What a session holds from outside, oldest first. After clearing, `remains` says in plain words what has the same text and is kept, such as an answer that quotes it. */
export type FetchedList = {
  items: FetchedView[]
  counts: FetchedCounts
  remains: string[]
}

/** One page or search result. The text is in the requests that it was sent in. */
export type FetchedView = {
  kind: "web_search" | "page"
  url: string
  title: string
  site_name: string
  at: string
  characters: number
  tokens: number
}

/** One part of a request that cannot be used. `where` is its place, such as `body.content`. */
export type FieldProblem = {
  where: string
  message: string
}

/** A file. `data` are its bytes in base64; what it is is found out from them, not from its name. */
export type FileBody = {
  name: string
  data: string
}

/** The whole text of a file. */
export type FileContent = {
  text: string
}

/** What a file was like when it was named: the hash of its content and when it was last changed. */
export type FileMark = {
  hash: string
  modified_at: string
}

/** Bytes already at the provider, named by a handle the provider issued: an OpenAI or Anthropic file id, a Gemini file URI, a storage URL only that provider can read. No bytes travel and nothing is fetched. Only the provider that minted the handle can resolve it; a peer that cannot drops the part as it drops any part it cannot use. */
export type FileSource = {
  type?: "file"
  value: string
  provider?: string | null
  mimeType?: string | null
  [more: string]: unknown
}

/** A file of an agent: its name in the folder, all of it, its revision, and what is wrong with it. */
export type FileView = {
  file: string
  raw: string
  revision: string
  problems: Problem[]
}

/** Files of the agent's folder were written, made or deleted: these. Read again what you show of them. */
export type FilesChanged = {
  files: string[]
  type: "agent.files"
}

/** Which turns count: of whom, of which agent and model, from which day to which, both included. None: any. */
export type Filters = {
  owner: string | null
  agent: string | null
  model: string | null
  since: string | null
  until: string | null
}

/** What was found, the latest first, and the cursor of the next page; null when this was the last. `words` and `understood` tell how the line was read. `complete` is false while some sessions are not indexed yet: ask again in a moment. `names_only` tells that only names are looked at, because conversations are encrypted. */
export type FindView = {
  words: string[]
  understood: string[]
  found: FoundInSession[]
  items: FoundAgentItem[]
  cursor: string | null
  complete: boolean
  names_only: boolean
}

/** What a provider answered to one call, folded from its bytes. `id` is the provider's name for the answer, and `finish_reason` is in its words. `error` is what an answer without success says. */
export type FoldedReply = {
  id: string
  text: string
  thinking: string
  tool_calls: ToolCall[]
  finish_reason: string
  model: string
  error: string
}

/** What a folder holds, folders first, and the cursor of the next page; null when this was the last. */
export type FolderView = {
  path: string
  entries: Entry[]
  cursor: string | null
}

/** Where to fork: before this turn; without one, after everything that is finished. */
export type Fork = {
  turn?: number | null
  name?: string | null
}

/** How the model asked for an item in the middle of a turn: in which step, by which finder, with which words. The tool that reads resources is not asked for: `finder` is the tool whose result named one, `query` its address. `score` is how well the item matched the words; None where it was named. `pages` are those of a reference that were read. */
export type Found = {
  step: number
  finder: string
  query: string
  score: number | null
  pages: number[]
}

/** An item of an agent whose name or description has the words. */
export type FoundAgentItem = {
  agent: string
  type: "rule" | "reference" | "tool"
  name: string
  server: string | null
  include: "always" | "manual" | "agent"
  description: string
}

/** A turn, a message that was said elsewhere (`turn` is null), or a session's name (both are null) that was found. `seq` is where it begins in the log. `tokens` is how long the turn's request was; null where it had none. */
export type FoundInSession = {
  session_id: string
  title: string
  agent: string
  turn: number | null
  seq: number | null
  at: string
  tokens: number | null
  excerpt: string
}

/** Items that a query needs, best first, each with its evidence. `degraded` says what was less good than it should be: only words were compared, a language is not the model's. */
export type FoundItems = {
  items: ContextItem[]
  degraded: string[]
}

/** The name and arguments of a tool call. */
export type FunctionCallInput = {
  name: string
  arguments: string
  [more: string]: unknown
}

/** A key of a provider. */
export type GivenKey = {
  key: string
}

/** The conversation was erased. Only the fact remains, how many turns there had been, and digests of their keys. */
export type HistoryCleared = {
  turns: number
  keys: string[]
  actor: "user" | "model" | "system"
  type: "history.cleared"
}

/** The conversation was erased. Only the fact remains, how many turns there had been, and digests of their keys. */
export type HistoryClearedEvent = {
  seq: number
  at: string
  turns: number
  keys: string[]
  actor: "user" | "model" | "system"
  type: "history.cleared"
}

/** An image part. */
export type ImagePart = {
  type?: "image"
  id?: string | null
  source: DataSource | UrlSource | FileSource
  metadata?: unknown | null
  [more: string]: unknown
}

/** How many passages are embedded, and out of how many. */
export type IndexingNow = {
  done: number
  total: number
  type: "agent.indexing"
}

/** An item came into the session. */
export type ItemAdded = {
  item: SessionItem
  actor: "user" | "model" | "system"
  type: "item.added"
}

/** An item came into the session. */
export type ItemAddedEvent = {
  seq: number
  at: string
  item: SessionItem
  actor: "user" | "model" | "system"
  type: "item.added"
}

/** What became of an item. `reason` is why it came, or why it went. `diff` is a unified diff of what it says. */
export type ItemChange = {
  ref: ItemRef
  happened: "entered" | "left" | "changed" | "moved"
  reason: string
  tokens: number
  diff: string
}

/** How many items of each type an agent makes available. */
export type ItemCounts = {
  rules: number
  references: number
  tools: number
}

/** An item with all it says: the text of a rule or a reference, the parameters of a tool. A rule or a reference is a file of the agent's folder: `raw` is all of it, and `revision` is what a change of it names. Tools have none: how they are included is a setting of their server. */
export type ItemDetail = {
  type: "rule" | "reference" | "tool"
  name: string
  server: string | null
  title: string
  description: string
  include: "always" | "manual" | "agent"
  enabled: boolean
  permission: "required" | "not_required" | "forbidden" | null
  priority: number | null
  version: string
  hash: string
  tokens: number
  text: string | null
  related: string[]
  parameters: Record<string, unknown> | null
  file: string | null
  raw: string | null
  revision: string | null
}

/** What changes about an item. What is not named stays; null takes a setting away, so that its default counts. */
export type ItemEdit = {
  description?: string | null
  priority?: number | null
  include?: "always" | "manual" | "agent" | null
  enabled?: boolean | null
  version?: string | null
  title?: string | null
  related?: string[] | null
  text?: string | null
}

/** Items: rules, then references, then tools; and the cursor of the next page, null when this was the last. */
export type ItemList = {
  items: ItemView[]
  cursor: string | null
}

/** A removal was taken back: the item is not in the session, and may be selected for a request again. */
export type ItemReadmitted = {
  ref: ItemRef
  actor: "user" | "model" | "system"
  type: "item.readmitted"
}

/** A removal was taken back: the item is not in the session, and may be selected for a request again. */
export type ItemReadmittedEvent = {
  seq: number
  at: string
  ref: ItemRef
  actor: "user" | "model" | "system"
  type: "item.readmitted"
}

/** The name of an item. A tool is named together with its server. */
export type ItemRefInput = {
  type: "rule" | "reference" | "tool"
  name: string
  server?: string | null
}

/** The name of an item. A tool is named together with its server. */
export type ItemRef = {
  type: "rule" | "reference" | "tool"
  name: string
  server: string | null
}

/** An item left the session, or is never to come into it. The removal is remembered. */
export type ItemRemoved = {
  ref: ItemRef
  actor: "user" | "model" | "system"
  type: "item.removed"
}

/** An item left the session, or is never to come into it. The removal is remembered. */
export type ItemRemovedEvent = {
  seq: number
  at: string
  ref: ItemRef
  actor: "user" | "model" | "system"
  type: "item.removed"
}

/** One item over time. `included` counts the requests that it was sent in, `by_mode` how it came into them (`carried`: it stood there from an earlier turn); `tokens` and `cost_usd` are what it took there. `used` counts those in which the answer left a trace of it, `by_use` in what way, and `probably` those in which the answer is near to it in meaning without one; `used_share` is the share of both, so at least so much was of use. `no_trace` counts those in which neither was found, with `no_trace_tokens`: that does not prove that it was of no use. What is left was not compared. `unused_tokens` is what a tool took in requests in which it was not called. `considered` counts the selections in which it was a candidate, `selected` those that took it, `not_sent` the requests that it should have been in and was not (no room, server down, …). `added_by_hand` and `removed_by_hand` count what people did after an answer. `scores` are its scores as a candidate, in ten equal steps from 0 to 1: how often it was selected and how often not. */
export type ItemRow = {
  ref: ItemRef
  agent: string
  included: number
  by_mode: Record<string, number>
  tokens: number
  cost_usd: string
  used: number
  by_use: Record<string, number>
  used_share: number | null
  probably: number
  no_trace: number
  no_trace_tokens: number
  unused_tokens: number
  considered: number
  selected: number
  not_sent: number
  added_by_hand: number
  removed_by_hand: number
  mean_score: number | null
  scores: ScoreStep[]
  last_included: string | null
  last_used: string | null
}

/** Another text or description for a rule or a reference. What is null stays as it was. */
export type ItemText = {
  ref: ItemRefInput
  text?: string | null
  description?: string | null
}

/** Whether one item that was sent was used, how, and by what words of the answer one can see it. `used` is true for the verdict `used` alone. `nearness` is the cosine between the item and the answer where they are nearest; None where it was not needed or could not be measured. */
export type ItemUse = {
  ref: ItemRef
  used: boolean
  how: "called" | "cited" | "quoted" | "drawn_upon" | null
  trace: string
  verdict: "used" | "probably" | "no_trace" | "not_called" | "unknown"
  nearness: number | null
}

/** An item that an agent makes available. Tools have no priority; only tools have a permission. `tokens` is what sending all of it takes. */
export type ItemView = {
  type: "rule" | "reference" | "tool"
  name: string
  server: string | null
  title: string
  description: string
  include: "always" | "manual" | "agent"
  enabled: boolean
  permission: "required" | "not_required" | "forbidden" | null
  priority: number | null
  version: string
  hash: string
  tokens: number
}

/** Whether anything changed, and the items of the session now; `excluded` are those that are kept out of it. */
export type ItemsChange = {
  changed: boolean
  items: SessionItem[]
  excluded: ItemRef[]
}

/** The items of a session, and how each came in. */
export type ItemsView = {
  items: SessionItem[]
}

export type JsonValue = unknown

/** Names of models that are known to work, as `provider:model`; others may work too. And every provider. */
export type KnownModels = {
  models: string[]
  providers: ProviderView[]
}

/** A question, and the items that it needs; those in `may` are neither right nor wrong. */
export type LabelBody = {
  message: string
  must?: ItemRefInput[]
  may?: ItemRefInput[]
  name?: string
}

/** Labelled questions. Without any, labels are what your past turns with the agent made use of. */
export type LabelsBody = {
  labels?: LabelBody[]
}

/** A token, to be kept in a cookie that scripts cannot read. */
export type Login = {
  token: string
}

/** Who is asking: null without a valid token. `token_needed` tells whether one can do without a token. */
export type Me = {
  owner: string | null
  scopes: ("read" | "chat" | "manage")[]
  token: string | null
  token_needed: boolean
}

/** How well a selection did. Shares are None where there was nothing to count. `precision` is the share of the selected that was needed, `recall` the share of the needed that was selected, `f1` their harmonic mean; `mean_selected` is for one question. What was needed and no candidate counts as not selected. */
export type Measure = {
  questions: number
  needed: number
  selected: number
  hits: number
  precision: number | null
  recall: number | null
  f1: number | null
  mean_selected: number | null
}

/** A message was put into the conversation from outside, without a turn. `source` is what it was made of, word for word, for a framework that wants its own form back. */
export type MessageAdded = {
  role: "user" | "assistant" | "system"
  content: string
  tokens: number
  source: string
  attachments: Attachment[]
  type: "message.added"
}

/** A message was put into the conversation from outside, without a turn. `source` is what it was made of, word for word, for a framework that wants its own form back. */
export type MessageAddedEvent = {
  seq: number
  at: string
  role: "user" | "assistant" | "system"
  content: string
  tokens: number
  source: string
  attachments: Attachment[]
  type: "message.added"
}

/** Messages, oldest first. `before` gives the page before this one; null when there is none. */
export type MessagePage = {
  messages: (UserMessage | SystemMessage | ErrorMessage | ApprovalMessage | AssistantMessage)[]
  before: number | null
}

/** A message that had been put in from outside was taken back. `tokens` is what its text had cost. `erased` names the blobs that were erased with it. `drops_summary` tells that a summary that covered it is gone too. */
export type MessageRemoved = {
  seq: number
  tokens: number
  erased: string[]
  drops_summary: boolean
  type: "message.removed"
}

/** A message that had been put in from outside was taken back. `tokens` is what its text had cost. `erased` names the blobs that were erased with it. `drops_summary` tells that a summary that covered it is gone too. */
export type MessageRemovedEvent = {
  seq: number
  at: string
  removed: number
  tokens: number
  erased: string[]
  drops_summary: boolean
  type: "message.removed"
}

/** A listener fell behind. Every event after `after` follows, from the log. Of the text that was being written parts are lost: what is still unfinished comes again from its beginning. */
export type MissedEvent = {
  after: number
  type: "missed"
}

/** What a million tokens of a model cost in US dollars, as its agent says. Tokens that are read from the provider's cache or written to it cost what other input costs, unless they have a price of their own. Those that are written for an hour cost what other written ones cost, unless they have theirs. */
export type ModelPrice = {
  input: number
  output: number
  cache_read: number | null
  cache_write: number | null
  cache_write_1h: number | null
}

/** One model call ended well. `tokens` is what its text costs by our own count. `own_words` is the reply as its provider wrote it, where the provider wants that back with the results of tools; empty where the step says it all. `price` is what the agent says that the model costs. */
export type ModelReplied = {
  turn: number
  step: Step
  tokens: number
  own_words: string
  price: ModelPrice | null
  type: "model.replied"
}

/** One model call ended well. `tokens` is what its text costs by our own count. `own_words` is the reply as its provider wrote it, where the provider wants that back with the results of tools; empty where the step says it all. `price` is what the agent says that the model costs. */
export type ModelRepliedEvent = {
  seq: number
  at: string
  turn: number
  step: Step
  tokens: number
  own_words: string
  price: ModelPrice | null
  type: "model.replied"
}

/** The whole answer of a turn: its model calls in order. */
export type ModelReply = {
  steps: Step[]
}

/** One model, as the request named it. */
export type ModelRow = {
  model: string
  spent: Spent
}

/** The model answered a running tool (`sampling`). `question_id` is what the tool asked, `step` what it was told. */
export type ModelSampled = {
  turn: number
  question_id: string
  step: Step
  type: "model.sampled"
}

/** The model answered a running tool (`sampling`). `question_id` is what the tool asked, `step` what it was told. */
export type ModelSampledEvent = {
  seq: number
  at: string
  turn: number
  question_id: string
  step: Step
  type: "model.sampled"
}

/** One thing to change, in words and as a value, which is the `most` or the `least` that will do. `domain` is the group of search settings that it belongs to. `tokens` is how much larger the window must be; `add` and `remove` are done to the session by hand; `agent` is something to do to the agent. */
export type Need = {
  what: "floor" | "share_of_best" | "top_n" | "include_score" | "enabled" | "tokens" | "add" | "remove" | "agent"
  text: string
  value: number | boolean | null
  bound: "most" | "least" | null
  domain: "text" | "tools" | null
}

/** A new agent: without items, or a copy of the agent `copy_of`. */
export type NewAgent = {
  name: string
  description?: string
  copy_of?: string | null
}

/** A new rule or reference: its settings and its text, or `raw`, the whole file with its front matter. */
export type NewItem = {
  type: "rule" | "reference"
  name: string
  description?: string
  priority?: number
  include?: "always" | "manual" | "agent"
  enabled?: boolean
  version?: string
  title?: string | null
  related?: string[]
  text?: string
  raw?: string | null
}

/** What the user says. With `wait_s`, a session that is busy is waited for. `tools` are tools of the server `client`, which the caller runs itself: the turn waits for their results. `attachments` are files that come with the message. */
export type NewMessage = {
  content: string
  wait_s?: number
  tools?: CallerTool[]
  reply_options?: ReplyOptionsInput | null
  attachments?: FileBody[]
}

/** What a new session begins with. Without an agent it gets the first one. */
export type NewSession = {
  agent?: string | null
  name?: string | null
  settings?: Partial<SessionSettings> | null
}

/** How the test is to be named. Without a name it gets the beginning of the message. */
export type NewTest = {
  name?: string
}

/** Files that tools were seen to touch, the latest last. */
export type Observed = {
  observed: string[]
}

/** A tool under the name that the model is given for it. One that is `deferred` is only declared: the model does not see it before a message adds it. */
export type OfferedTool = {
  offered_name: string
  ref: ItemRef
  description: string
  parameters: Record<string, unknown>
  deferred: boolean
}

/** A tool that was offered in the last call, and how often it was called. `bytes` and `tokens` are what describes it in that call, `session_tokens` what that came to over all calls. `server` is the MCP server that its name tells of; empty for others. */
export type OfferedToolUse = {
  name: string
  server: string
  bytes: number
  tokens: number
  session_tokens: number
  calls: number
}

/** A turn that has not finished. `approvals` are the calls that wait for a person. `questions` are what a running tool asks. */
export type OpenTurnView = {
  turn: number
  state: "running" | "waiting"
  request: string | null
  approvals: ToolCall[]
  questions: ToolQuestion[]
}

/** A text file as it is now. `revision` is another one as soon as a byte is another. */
export type OpenedFile = {
  path: string
  text: string
  revision: string
  size: number
  modified_at: string
}

/** The program that a recorded session belongs to. `conversation` is the program's own id for it, empty where the program gave none. `parent` is the session whose agent began this one, such as that of a subagent. Of an imported session `source` says what it was read from, and `not_told` what that source did not tell when the session began. */
export type Origin = {
  kind: "xray" | "import" | "server"
  program: string
  version: string
  conversation: string
  parent: string | null
  source: "claude-code" | "codex" | "otel" | "langfuse" | "litellm" | null
  not_told: ("wire" | "system" | "tools" | "messages" | "usage" | "failures")[]
}

/** An owner's calls of one day that belong to no session, as `session` keeps them; None: there were none. */
export type OutsideCallList = {
  day: string
  session: string | null
  calls: CallList
}

/** A reference that one session made from a file. `blob` names its definition, `characters` is how long it is. */
export type OwnReference = {
  name: string
  file: string
  blob: string
  characters: number
  origin: "this session"
}

/** A reference that a session made from a file. `tokens` is what sending all of it takes; 0: its words are gone. */
export type OwnReferenceView = {
  name: string
  file: string
  blob: string
  characters: number
  origin: "this session"
  title: string
  tokens: number
}

/** A page to fetch. */
export type PageAddress = {
  url: string
}

/** A page that a program, such as a browser, has read: its address, and its text or its HTML. */
export type PageIn = {
  url: string
  title?: string
  text?: string
  html?: string
}

/** One stretch of the request that is not an item by itself: what it is, what it cost, whether it was cut. */
export type Part = {
  kind: "core" | "site" | "user_context" | "time_context" | "override" | "rules" | "references" | "tools" | "summary" | "history" | "sources" | "additions" | "recall" | "resume" | "fetched" | "attached" | "selected" | "message"
  name: string
  tokens: number
  hash: string | null
  status: "used" | "truncated" | "left_out"
  reason: string
  evidence: Evidence | null
}

/** What became of a stretch of the prompt. `tokens` is how many it takes more, or less. */
export type PartChange = {
  kind: "core" | "site" | "user_context" | "time_context" | "override" | "rules" | "references" | "tools" | "summary" | "history" | "sources" | "additions" | "recall" | "resume" | "fetched" | "attached" | "selected" | "message"
  name: string
  happened: "entered" | "left" | "changed" | "moved"
  tokens: number
  diff: string
}

/** One kind of part: in how many requests it was, what it took there, how often it had to be cut or left out. `cost_usd` is what it cost as input in all calls of those turns, at the price of its place: tokens that the provider read from its cache, wrote to it, or neither. */
export type PartRow = {
  kind: "core" | "site" | "user_context" | "time_context" | "override" | "rules" | "references" | "tools" | "summary" | "history" | "sources" | "additions" | "recall" | "resume" | "fetched" | "attached" | "selected" | "message"
  requests: number
  tokens: number
  share: number
  cost_usd: string
  cut: number
}

/** What one kind of part takes of a request. */
export type PartTokens = {
  kind: "core" | "site" | "user_context" | "time_context" | "override" | "rules" | "references" | "tools" | "summary" | "history" | "sources" | "additions" | "recall" | "resume" | "fetched" | "attached" | "selected" | "message"
  tokens: number
}

/** The stretch of an item's indexed text that matched the query. */
export type Passage = {
  text: string
  start: number
  end: number
}

/** The record of a past request, with what has become of its items since. */
export type PastContext = {
  id: string
  turn: number
  timestamp: string
  agent: string
  settings: CallSettings
  query: Query
  items: PastItem[]
  candidates: Candidate[]
  absent: Absent[]
  parts: Part[]
  budget: Budget
  message_count: number
  degraded: string[]
  search: Record<string, unknown>
  pieces: PlacedPiece[]
  catalog: string | null
  finders: boolean | null
  carried: CarriedItem[]
  dropped: DroppedItem[]
  rebase: Rebase | null
  prefix: SentPrefix | null
}

/** An item of a past request. `changed_since` compares with the agent now. */
export type PastItem = {
  type: "rule" | "reference" | "tool"
  name: string
  server: string | null
  include_mode: "always" | "manual" | "agent"
  status: "used" | "truncated" | "missing" | "over_budget" | "not_permitted" | "server_down" | "disabled"
  reason: string
  tokens: number
  hash: string | null
  version: string
  priority: number | null
  evidence: Evidence | null
  offered_name: string | null
  found: Found | null
  since: number | null
  changed_since: "unchanged" | "changed" | "deleted" | "unknown"
}

/** How people talk. `hours` are turns by hour of the day in UTC; `lengths` are sessions by how many turns they have. The keys of `lengths` are `1`, `2`, `3-5`, `6-10`, `11-20`, `21-50` and `51+`. */
export type Patterns = {
  outcomes: Record<string, number>
  modes: Record<string, number>
  follow_ups: number
  small_talk: number
  degraded: number
  tool_calls: number
  tool_errors: number
  hours: number[]
  lengths: Record<string, number>
}

/** Something that competed for the room, and how many of its tokens were sent. `tier` is its importance. */
export type PlacedPiece = {
  key: string
  tier: "must" | "attached" | "latest" | "resume" | "summary" | "manual" | "selected" | "finder" | "carried" | "fetched" | "recall" | "older"
  tokens: number
  sent_tokens: number
  can_shorten: boolean
}

/** How far two prompts agree. `same_bytes` counts from the beginning; `same_tokens` is about as many tokens. What ended the agreement: an item where one can be named, the part that it stands in, and what happened to it. All are None when one prompt is the beginning of the other or both are the same. */
export type Prefix = {
  same_bytes: number
  same_tokens: number
  bytes_before: number
  bytes_after: number
  part: "core" | "site" | "user_context" | "time_context" | "override" | "rules" | "references" | "tools" | "summary" | "history" | "sources" | "additions" | "recall" | "resume" | "fetched" | "attached" | "selected" | "message" | null
  name: string
  item: ItemRef | null
  happened: "entered" | "left" | "changed" | "moved" | null
  before: string
  after: string
}

/** Where a call stopped beginning as the one before, so that the provider could not read it from its cache. `at` is the block of the body, and `item` whose it is, where that is known: an item such as `rule:tone`, a part of the prompt, a message. `before` and `after` are what stands there, in brief, in the call `since` and in this one. `lost_tokens` are those that could have been read and were billed again, `cost_usd` what that cost: null when usage or price is not known. */
export type PrefixBreak = {
  at: string
  item: string | null
  kind: "added" | "removed" | "edited" | "reordered" | "reserialized" | "cache_control" | "expired" | "model"
  reason: string
  since: number
  before: string
  after: string
  lost_tokens: number
  cost_usd: string | null
}

/** How stable the beginning of the prompt is, from one turn of a session to the next: what prompt caches live on. `kept_share` is how much of the previous prompt, in bytes, the next one began with; `cached_share` is how much of the input providers reported as read from their cache. `rebases` are requests that did not go on with the last one, with what that cost. Of the first calls of turns `expected_tokens` should have been read from the cache, and `read_tokens` were. In `collapses` of them far less was read than expected, `missing_tokens` in all: the provider dropped the beginning early, or another of its machines took the call. */
export type PrefixKept = {
  compared: number
  kept_share: number | null
  cached_share: number | null
  rebases: number
  rebase_usd: string
  expected_tokens: number
  read_tokens: number
  collapses: number
  missing_tokens: number
}

/** Something in the folder that cannot be used, and where. Everything else keeps working. */
export type Problem = {
  file: string
  line: number | null
  reason: string
}

/** Why a request failed: `detail` for people, `code` and `facts` for programs. */
export type ProblemDocument = {
  type: string
  title: string
  status: number
  detail: string
  code: string
  facts: Record<string, unknown>
  errors: FieldProblem[]
}

/** What cannot be used in an agent's folder, by file and line. Everything else works. */
export type ProblemList = {
  problems: Problem[]
}

/** What is wrong in the agent's folder now, all of it. */
export type ProblemsNow = {
  problems: Problem[]
  type: "agent.problems"
}

/** Observed files to take into the working context. */
export type Promotion = {
  paths: string[]
}

/** The prompts that an agent has: `core` first, then `default_site`, then site skills by name. */
export type PromptList = {
  prompts: PromptView[]
}

/** A prompt in a list. `name` is what it is addressed by; a site skill has the `hosts` that it is for. */
export type PromptView = {
  name: string
  file: string
  hosts: string[]
  characters: number
}

/** What would be better for one domain. `before` and `after` are measured on questions held out, `fitted` on all. `better` tells whether it is worth changing anything; `changes` are the settings that differ. */
export type Proposal = {
  domain: "text" | "tool"
  settings: Record<string, unknown>
  changes: Record<string, unknown>
  before: Measure
  after: Measure
  fitted: Measure
  folds: number
  better: boolean
}

/** A provider of models. When something is lacking, `advice` says what to do; the key itself is never shown. `url` is the address that is asked when it is not the provider's own. `models` are names that are known; others may work too. */
export type ProviderView = {
  name: string
  lacking: "key" | "package" | "address" | null
  advice: string
  key_variable: string
  key_source: "environment" | "kept" | null
  url: string
  models: string[]
}

/** What calls were made for: tokens and cost as far as they are known, and how many calls lack which. */
export type PurposeRow = {
  purpose: "answer" | "summary" | "embedding" | "sampling" | "count" | "helper"
  calls: number
  input_tokens: number
  output_tokens: number
  cache_read_tokens: number
  cache_write_tokens: number
  cost_usd: string
  calls_without_usage: number
  calls_without_price: number
}

/** How well the selection chose. Shares are None where nothing was counted. `selected` counts items that the selection took in, `selected_used` those of them of which the answer has a trace, `selected_probably` those that it is near to in meaning without one. `missed` counts items that the user added by hand right after an answer, or named in the message: what was needed and not selected. So `precision` is the share of the selected that was used for sure or probably, and `recall` the share of the needed that was selected. At least so much: an item can be of use and leave no trace. */
export type Quality = {
  selected: number
  selected_used: number
  selected_probably: number
  missed: number
  precision: number | null
  recall: number | null
}

/** What was searched for on behalf of a message. `text` is the message itself unless `reason` says otherwise. A follow-up takes `context_share` of its meaning from `text`, which then begins with the turns before it. `clauses` are the parts of a message that asks for several things; `small_talk` says that it asks for nothing. */
export type Query = {
  text: string
  reason: string
  context_share: number
  clauses: string[]
  small_talk: boolean
}

/** What the user answers to a running tool. `content` are the fields of a form that is accepted. */
export type QuestionAnswer = {
  question_id: string
  action: "accept" | "decline" | "cancel"
  content?: Record<string, unknown> | null
}

/** The question of a running tool was answered. `content` has the fields of a form that was accepted. `reason` says why the system answered, where no user was asked. */
export type QuestionAnswered = {
  turn: number
  question_id: string
  action: "accept" | "decline" | "cancel"
  content: Record<string, unknown> | null
  actor: "user" | "model" | "system"
  reason: string
  type: "question.answered"
}

/** The question of a running tool was answered. `content` has the fields of a form that was accepted. `reason` says why the system answered, where no user was asked. */
export type QuestionAnsweredEvent = {
  seq: number
  at: string
  turn: number
  question_id: string
  action: "accept" | "decline" | "cancel"
  content: Record<string, unknown> | null
  actor: "user" | "model" | "system"
  reason: string
  type: "question.answered"
}

/** A running tool asks the user. The turn goes on running: the call waits for the answer. */
export type QuestionAsked = {
  turn: number
  question: ToolQuestion
  type: "question.asked"
}

/** A running tool asks the user. The turn goes on running: the call waits for the answer. */
export type QuestionAskedEvent = {
  seq: number
  at: string
  turn: number
  question: ToolQuestion
  type: "question.asked"
}

/** A whole file, as it is to be on disk. */
export type RawFile = {
  raw: string
}

/** A part of a shared call: its place among the parts of the record, and that of its text among the file's. */
export type ReadPart = {
  part: number
  text: number
}

/** A span of the agent's reasoning, materialised as a message. Stands alone rather than composing BaseMessage, because it carries no name. */
export type ReasoningMessage = {
  subagentRunId?: string | null
  id: string
  role?: "reasoning"
  content: string
  encryptedValue?: string | null
  metadata?: Record<string, unknown> | null
  [more: string]: unknown
}

/** A request that does not go on with the one before. `rewritten_tokens` are those that could have been read from the cache and are not; `price_tokens` is what that costs, in tokens of plain input, and `price_usd` in dollars, where the model has a price. `item` is the one that had to leave, where one had to. */
export type Rebase = {
  code: "carrying_cost" | "size" | "cold" | "item" | "model" | "system" | "tools" | "history"
  reason: string
  rewritten_tokens: number
  price_tokens: number
  price_usd: number | null
  item: string
}

/** What broke the beginning of prompts: why, which item had to leave (empty where none had to), how often, and what was written again for it. */
export type RebaseRow = {
  code: "carrying_cost" | "size" | "cold" | "item" | "model" | "system" | "tools" | "history"
  item: string
  rebases: number
  rewritten_tokens: number
  cost_usd: string
}

/** Whether a past request can be rebuilt byte for byte; `damages` say what is amiss if not. */
export type Rebuilt = {
  record: string
  identical: boolean
  damages: string[]
  messages: number
  tools: number
  used_tokens: number
}

/** An item of a turn's request in brief. `sent` is false when the model was not given it. `carried` tells that this message did not select it: it stands in the prompt since an earlier turn. */
export type ReceiptItem = {
  type: "rule" | "reference" | "tool"
  name: string
  server: string | null
  include_mode: "always" | "manual" | "agent"
  score: number | null
  tokens: number
  sent: boolean
  carried: boolean
}

/** What the recording proxy did with the caller's own calls since this worker started. `lost` counts calls that were passed on and not recorded, by reason: `full` (too much was waiting), `store` (it did not take them), `unreadable`. `providers` are the names under `/xray/`. */
export type RecordingStatus = {
  providers: string[]
  recorded: number
  lost: Record<string, number>
}

/** A file became a reference of this session. */
export type ReferenceAdded = {
  reference: OwnReference
  actor: "user" | "model" | "system"
  type: "reference.added"
}

/** A file became a reference of this session. */
export type ReferenceAddedEvent = {
  seq: number
  at: string
  reference: OwnReference
  actor: "user" | "model" | "system"
  type: "reference.added"
}

/** A reference that the session had made from a file is gone. */
export type ReferenceRemoved = {
  name: string
  actor: "user" | "model" | "system"
  type: "reference.removed"
}

/** A reference that the session had made from a file is gone. */
export type ReferenceRemovedEvent = {
  seq: number
  at: string
  name: string
  actor: "user" | "model" | "system"
  type: "reference.removed"
}

/** The references that a session made from files, in the order in which they came. After a removal, `remains` says in plain words what keeps the text. */
export type ReferencesView = {
  references: OwnReferenceView[]
  remains: string[]
}

/** A text that the last call holds more than once. `tokens` are those of the copies after the first. */
export type RepeatedText = {
  kind: "tool" | "system" | "environment" | "instructions" | "skills" | "mcp" | "reminder" | "billing" | "message" | "reply" | "thinking" | "call" | "result" | "attachment" | "setting"
  name: string
  copies: number
  tokens: number
}

/** What became of one candidate: in the turn, and now. `fits` is None for one that was not selected. */
export type ReplayedItem = {
  ref: ItemRef
  selected: boolean
  was_selected: boolean
  code: string
  reason: string
  evidence: Evidence | null
  fits: boolean | null
}

/** What the caller of a turn requires of its answer. With `must_call` the turn's first model call must call one of these tools. `response_format` None: plain text. The words of a model call end before the first of `stop`. `sampling` are further parameters by OpenAI's names, such as `seed`; a provider that does not take one is not given it. */
export type ReplyOptionsInput = {
  must_call?: ItemRefInput[]
  response_format?: ResponseFormatInput | null
  stop?: string[]
  sampling?: Record<string, unknown>
}

/** What the caller of a turn requires of its answer. With `must_call` the turn's first model call must call one of these tools. `response_format` None: plain text. The words of a model call end before the first of `stop`. `sampling` are further parameters by OpenAI's names, such as `seed`; a provider that does not take one is not given it. */
export type ReplyOptions = {
  must_call: ItemRef[]
  response_format: ResponseFormat | null
  stop: string[]
  sampling: Record<string, unknown>
}

/** How all tests of an agent went. Files that cannot be used count as failures. */
export type Report = {
  agent: string
  results: Verdict[]
  problems: Problem[]
}

/** Everything that a model is given in one turn, before its own tool calls are added. `tools` are those that it can call. `declared` are others that its provider is told of, so that one can be added later without a change of what stands first in the prompt; the model does not see them. */
export type Request = {
  messages: RequestMessage[]
  tools: OfferedTool[]
  context: RequestContext
  declared: OfferedTool[]
}

/** What the model will be given is decided. `request` names the blob that holds all of it. `step` is the first model call that is given it: 1, or a later one when the model asked for more. `catalog` names the blob with what the agent had; None when that was not kept. `smaller` is the window that a second request of a turn was built for, after the model had refused the first one as too long. `carry` is what the request leaves standing for the next one; None when it leaves nothing. */
export type RequestBuilt = {
  turn: number
  request: string
  catalog: string | null
  step: number
  smaller: SmallerWindow | null
  carry: CarryChange | null
  type: "request.built"
}

/** What the model will be given is decided. `request` names the blob that holds all of it. `step` is the first model call that is given it: 1, or a later one when the model asked for more. `catalog` names the blob with what the agent had; None when that was not kept. `smaller` is the window that a second request of a turn was built for, after the model had refused the first one as too long. `carry` is what the request leaves standing for the next one; None when it leaves nothing. */
export type RequestBuiltEvent = {
  seq: number
  at: string
  turn: number
  request: string
  catalog: string | null
  step: number
  smaller: SmallerWindow | null
  carry: CarryChange | null
  type: "request.built"
}

/** The record of one turn's request. `message_count` is how many messages the session had before this one. What the model asked for in the middle of the turn is among `items`, and still among `candidates`, which say why the selection left it out. `absent` are items that the session does not have for a reason of its own. `carried` is what entered in earlier turns and still stands in the prompt, `dropped` what stood there and left with this request, `rebase` why this request does not go on with the last one, if it does not. With `search` (the settings of the selection, every one of them), `pieces` (in order of importance) and `catalog` (what the agent had) the decisions can be made again. `finders` tells whether the model was to get tools to ask for what is left out. Records of earlier versions lack them. */
export type RequestContext = {
  id: string
  turn: number
  timestamp: string
  agent: string
  settings: CallSettings
  query: Query
  items: ContextItem[]
  candidates: Candidate[]
  absent: Absent[]
  parts: Part[]
  budget: Budget
  message_count: number
  degraded: string[]
  search: Record<string, unknown>
  pieces: PlacedPiece[]
  catalog: string | null
  finders: boolean | null
  carried: CarriedItem[]
  dropped: DroppedItem[]
  rebase: Rebase | null
  prefix: SentPrefix | null
}

/** One message as the model gets it, and the part of the prompt order that it belongs to. `name` tells parts of one kind apart for people; the model never sees it. `is_error` is for the result of a tool that failed. `erased` tells that the text of a past message was erased since. `tools_added` names tools that the model has from here on; how it is told is its provider's affair. `files` go with the text, in this order. */
export type RequestMessage = {
  role: "system" | "user" | "assistant" | "tool"
  content: string
  part: "core" | "site" | "user_context" | "time_context" | "override" | "rules" | "references" | "tools" | "summary" | "history" | "sources" | "additions" | "recall" | "resume" | "fetched" | "attached" | "selected" | "message"
  name: string
  tool_calls: ToolCall[]
  tool_call_id: string | null
  is_error: boolean
  erased: boolean
  tools_added: string[]
  files: SentFile[]
}

/** A selection that was run again, best first. `measured` tells whether anything had to be measured again. `search` are all settings that it ran under. `degraded` says what was less good than it should be. */
export type Rerun = {
  query: string
  search: Record<string, unknown>
  measured: boolean
  outcomes: ReplayedItem[]
  entered: ItemRef[]
  left: ItemRef[]
  degraded: string[]
}

/** The JSON that an answer must be. `schema` None: any object. `strict` is passed to the provider: whether the schema is followed to the letter. */
export type ResponseFormatInput = {
  schema?: Record<string, unknown> | null
  name?: string
  description?: string
  strict?: boolean | null
}

/** The JSON that an answer must be. `schema` None: any object. `strict` is passed to the provider: whether the schema is followed to the letter. */
export type ResponseFormat = {
  schema: Record<string, unknown> | null
  name: string
  description: string
  strict: boolean | null
}

/** What tools of the caller gave, by call id. */
export type Results = {
  results: ToolResultInput[]
}

/** An answer to one interrupt, sent on the run that continues from it. */
export type ResumeEntry = {
  interruptId: string
  status: "resolved" | "cancelled"
  payload?: unknown | null
  metadata?: Record<string, unknown> | null
  [more: string]: unknown
}

/** The budget as one item met it, in tokens. `pieces_tokens` is what could be sent in all. `left_tokens` is what was left when the item's turn came, and None when it never did. Both are None in records that do not say. */
export type RoomState = {
  pieces_tokens: number | null
  left_tokens: number | null
}

/** The folders whose files may be shown and edited; `WINDOWPANE_ROOTS` names them. `offered` is the folder that the server was started in, where it may be shared; null where it may not. It is among the roots when it is shared. */
export type RootList = {
  roots: string[]
  offered: string | null
}

/** A request to run an agent. Also echoed back as RUN_STARTED.input. Only threadId, runId and messages are required: those are the three the SDKs already agree on, and for tools and context an absent key and an empty array mean the same thing, so requiring them would catch nothing a producer could get wrong. */
export type RunAgentInput = {
  threadId: string
  runId: string
  protocolVersion?: string | null
  parentRunId?: string | null
  state?: unknown | null
  messages: (DeveloperMessage | SystemMessageInput | AssistantMessageInput | UserMessageInput | ToolMessage | ActivityMessage | ReasoningMessage)[]
  tools?: Tool[] | null
  context?: Context[] | null
  forwardedProps?: unknown | null
  resume?: ResumeEntry[] | null
  [more: string]: unknown
}

/** A message that was said elsewhere. */
export type SaidMessage = {
  role: "user" | "assistant" | "system"
  content: string
}

/** A test that was written into the agent's folder, and what the file says. */
export type SavedTest = {
  test: ContextTest
  text: string
}

/** Candidates whose score was from `low` up to `low` + 0.1. `used` counts the selected that answers made use of. */
export type ScoreStep = {
  low: number
  selected: number
  left_out: number
  used: number
}

/** What to look for, and among which items; without `items`, among all that the agent has. */
export type Search = {
  query: string
  items?: ItemRefInput[] | null
  top_k?: number
  top_n?: number
  include_score?: number
}

/** An item that a message selected, with its score. */
export type Selected = {
  ref: ItemRef
  score: number | null
  reason: string
}

/** One call and its body. `kinds` are what the body is made of, the largest first. `shared_bytes` is how much the body has in common, at the beginning, with the one sent before for the same purpose; null for the first. */
export type SentCall = {
  call: CallView
  kinds: SentShare[]
  shared_bytes: number | null
}

/** A file that a model is given with a message as it is, and what that costs. `estimated`: no rule is known. */
export type SentFile = {
  name: string
  media_type: string
  blob: string
  tokens: number
  estimated: boolean
}

/** An item of a past request as it was then. `text` is the whole text of a rule or a reference; when the item's status is `truncated` the model was given its beginning, and the turn's request shows how much. `definition` is everything that the item's hash covers. Both are null when there was nothing to send. `changed_since` compares with the agent now; it is `unknown` when the tool's server is away. */
export type SentItem = {
  item: ContextItem
  text: string | null
  definition: Record<string, unknown> | null
  changed_since: "unchanged" | "changed" | "deleted" | "unknown"
}

/** A part of a body, in characters. Parts follow one another without a gap. `tokens` is this part's share of what the provider counted, or our own count where it reported none; the parts of a call add up to it. `cost_usd` is what these tokens cost: null when usage or price is not known. */
export type SentPart = {
  kind: "tool" | "system" | "environment" | "instructions" | "skills" | "mcp" | "reminder" | "billing" | "message" | "reply" | "thinking" | "call" | "result" | "attachment" | "setting"
  name: string
  start: number
  end: number
  bytes: number
  tokens: number
  cost_usd: string | null
}

/** What a request began with, as hashes: enough to tell whether the next one goes on with it, and where it breaks. `messages` counts the system messages too. `tokens` is what a provider can keep of it: all that stands before the first volatile block. `expected_tokens` is how much of this request the provider should have read from its cache. `rewrite_price` is what writing one of these tokens again costs beyond reading it, in plain tokens, and `input_usd` the price of a plain one. */
export type SentPrefix = {
  system: string
  tools: string
  tool_count: number
  messages: string
  message_count: number
  tokens: number
  system_tokens: number
  tools_tokens: number
  expected_tokens: number
  rewrite_price: number
  input_usd: number | null
}

/** What the parts of one kind take of a call. `cost_usd` is null when usage or price is not known. */
export type SentShare = {
  kind: "tool" | "system" | "environment" | "instructions" | "skills" | "mcp" | "reminder" | "billing" | "message" | "reply" | "thinking" | "call" | "result" | "attachment" | "setting"
  parts: number
  bytes: number
  tokens: number
  cost_usd: string | null
}

/** A tool server became ready for this session for the first time, or unlocked more, and brought `always` tools. */
export type ServerArrived = {
  server: string
  items: SessionItem[]
  type: "server.arrived"
}

/** A tool server became ready for this session for the first time, or unlocked more, and brought `always` tools. */
export type ServerArrivedEvent = {
  seq: number
  at: string
  server: string
  items: SessionItem[]
  type: "server.arrived"
}

/** What changes about a tool server. What is not named stays; null takes a setting away, so that its default counts. A tool that is named has exactly the settings that are given for it. */
export type ServerChange = {
  include?: "always" | "manual" | "agent" | null
  permission?: "required" | "not_required" | "forbidden" | null
  enabled?: boolean | null
  tools?: Record<string, ToolSetting>
}

/** A tool server: its state, its settings, its tools as last known, and the file that describes it. */
export type ServerDetail = {
  name: string
  state: "connecting" | "ready" | "failed" | "disabled"
  error: string
  version: string
  include: "always" | "manual" | "agent" | null
  permission: "required" | "not_required" | "forbidden" | null
  enabled: boolean
  tools: ToolView[]
  file: string
  revision: string
}

/** An agent's tool servers, by name. */
export type ServerList = {
  servers: ServerView[]
}

/** A tool server has another state or other tools. `server` is null when the agent has it no more. */
export type ServerNow = {
  server: ServerView | null
  name: string
  type: "agent.server"
}

/** A tool server at this moment, and the names of its tools as last known. */
export type ServerView = {
  name: string
  state: "connecting" | "ready" | "failed" | "disabled"
  error: string
  version: string
  tools: string[]
}

/** What changes about a session. What is not named stays; null clears. With `agent` the session is given another agent; turns before keep what they were given. `context` replaces the whole working context, then `setContext` changes one set of it. With `sessionId` the change is refused when it is another session than the one addressed. The names may also be written with underscores. */
export type SessionChange = {
  name?: string | null
  agent?: string | null
  settings?: Partial<SessionSettings> | null
  context?: Record<string, string[]> | null
  setContext?: SetContext | null
  sessionId?: string | null
}

/** The working context was changed, or, with reason `resume`, shown to the model again. `marks` are the files of the set as they were at that moment; a file that was not there has none. */
export type SessionContext = {
  reason: "load" | "resume" | "changed"
  context: Record<string, string[]>
  set_name: string | null
  actor: "user" | "model" | "system"
  marks: Record<string, FileMark>
  type: "session.context"
}

/** The working context was changed, or, with reason `resume`, shown to the model again. `marks` are the files of the set as they were at that moment; a file that was not there has none. */
export type SessionContextEvent = {
  seq?: number
  at?: string
  type: "session.context"
  data: {
    reason: "load" | "resume" | "changed"
    context: Record<string, string[]>
    setName?: string
  }
  actor?: "user" | "model" | "system"
  marks?: Record<string, FileMark>
}

/** A session began, with every `always` item of its agent. `servers` are the tool servers that were ready. `branch_of` is set for a forked session, and `origin` is the program of a recorded session, which has no agent. */
export type SessionCreated = {
  agent: string
  owner: string
  name: string
  settings: Record<string, unknown>
  items: SessionItem[]
  servers: string[]
  branch_of: Branch | null
  origin: Origin | null
  type: "session.created"
}

/** A session began, with every `always` item of its agent. `servers` are the tool servers that were ready. `branch_of` is set for a forked session, and `origin` is the program of a recorded session, which has no agent. */
export type SessionCreatedEvent = {
  seq: number
  at: string
  agent: string
  owner: string
  name: string
  settings: Record<string, unknown>
  items: SessionItem[]
  servers: string[]
  branch_of: Branch | null
  origin: Origin | null
  type: "session.created"
}

/** The session is no more, and nothing follows. */
export type SessionDeletedEvent = {
  type: "session.deleted"
}

/** A whole session. `blobs` are texts by the hash of their content. */
export type SessionExport = {
  id: string
  events: ExportedEvent[]
  blobs: Record<string, string>
  exported_at: string
  format: "windowpane.session"
  version: 1
}

/** An item in a session, and how it came there. */
export type SessionItem = {
  ref: ItemRef
  mode: "always" | "manual"
}

/** Some sessions, last used first, and the cursor of the next page; null when this was the last. `names_only` tells that a search looks at names alone, because conversations are encrypted. */
export type SessionListView = {
  sessions: SessionView[]
  cursor: string | null
  names_only: boolean
}

/** What a page needs for its footer. */
export type SessionMeta = {
  context: Record<string, string[]>
}

/** What a session changes about its agent. None: as the agent has it. */
export type SessionSettings = {
  model: string | null
  temperature: number | null
  top_p: number | null
  max_output_tokens: number | null
  max_chat_turns: number | null
  tool_permission: "always" | "never" | "tool" | null
  search: Record<string, unknown> | null
  mode: "normal" | "thinking" | "research" | null
  current_url: string | null
  time_zone: string | null
  user_time: string | null
  environment_hint: string | null
  current_intent: string | null
  system_prompt: string | null
  cache: "auto" | "stable" | "fresh" | null
}

/** Settings changed. A value of None clears the setting. */
export type SessionUpdated = {
  changes: Record<string, unknown>
  actor: "user" | "model" | "system"
  type: "session.updated"
}

/** Settings changed. A value of None clears the setting. */
export type SessionUpdatedEvent = {
  seq: number
  at: string
  changes: Record<string, unknown>
  actor: "user" | "model" | "system"
  type: "session.updated"
}

/** A session as it is now. `settings` are its own; null: as the agent has it. `title` is its name, or how its conversation begins. `excluded` are items that were removed or excluded by hand, and are not selected for its requests. `branch_of` is where a session that was forked began. `origin` is the program whose calls were recorded; null: a session of an agent. Turns that were erased are not in `turn_count`; numbers go on after them: `last_turn` is the latest. `own_references` are those that the session made from files. */
export type SessionView = {
  id: string
  name: string
  title: string
  agent: string
  origin: Origin | null
  owner: string
  settings: SessionSettings
  items: SessionItem[]
  excluded: ItemRef[]
  rules: string[]
  references: string[]
  tools: ToolName[]
  context: Record<string, string[]>
  meta: SessionMeta
  observed: string[]
  fetched: FetchedCounts
  summary: Summary | null
  message_count: number
  turn_count: number
  last_turn: number
  token_count: number
  seq: number
  created_at: string | null
  updated_at: string | null
  open_turn: OpenTurnView | null
  branch_of: Branch | null
  own_references: OwnReference[]
}

/** A change of one set of the working context. No items with mode `replace` clears the set. */
export type SetContext = {
  setName: string
  items: string[]
  mode?: "replace" | "merge"
}

/** A call of a share file. Its record has no body: that begins with `same` characters of the body before, and then has `text`; null when it is not in the file. `read` are its parts in the order in which the provider reads them. */
export type SharedCall = {
  record: CallRecord
  same: number
  text: string | null
  read: ReadPart[]
}

/** Whether the offered folder is shared. It is named, so that no other one is shared by mistake. */
export type SharedFolder = {
  path: string
  share?: boolean
}

/** An item of a combination. `held`: it is in the session already. `added`: a user had added it by hand. */
export type SharedItem = {
  ref: ItemRef
  description: string
  held: boolean
  added: boolean
}

/** A session as a file that the page opens without storing it: what was said, and every call taken apart. `texts` are what the parts of calls say, each once, so that any two calls can be compared. Anything that looks like a key is taken out. In a `redacted` file every text is replaced by its length and a hash, and bodies are left out. */
export type SharedSession = {
  session: SessionView
  messages: (UserMessage | SystemMessage | ErrorMessage | ApprovalMessage | AssistantMessage)[]
  report: XrayReport
  calls: SharedCall[]
  texts: string[]
  redacted: boolean
  shared_at: string
  format: "windowpane.share"
  version: 1
}

/** One of the two turns, in figures. `calls` are all of its calls, with retries; `usage` and `cost_usd` are what is known of them together, and `calls_without_usage` and `calls_without_price` say of how many that is not known. `cost_usd` is None when none is. */
export type Side = {
  session_id: string
  turn: number
  model: string
  used_tokens: number
  items: number
  calls: number
  usage: Usage
  cost_usd: string | null
  calls_without_usage: number
  calls_without_price: number
}

/** What helped with questions like this one, best first. `looked_at` is how many past turns were compared. */
export type Similar = {
  message: string
  looked_at: number
  combinations: Combination[]
}

/** A past turn of the same owner, what was asked in it, and how near that is: 1 is the same. */
export type SimilarTurn = {
  session_id: string
  turn: number
  day: string
  message: string
  similarity: number
}

/** The window that a model turned out to have, when it refused a request that its listed window would take. `factor` is how many of its tokens one of ours was in that request. `exact` tells whether the model named its window and its count; otherwise `tokens` is a guess that holds with this factor alone. */
export type SmallerWindow = {
  model: string
  tokens: number
  factor: number
  exact: boolean
}

/** A document that an answer could draw on. `score` is 1 for one that was in the session anyway. */
export type Source = {
  title: string
  score: number
  ref: ItemRef | null
  url: string
}

/** A reference, by its name, or a site that pages came from: how often it was given, and how often used. */
export type SourceRow = {
  kind: "reference" | "site"
  name: string
  given: number
  used: number
}

/** Turns and what they cost. `calls` are all calls, with retries and those for summaries. `request_tokens` is our own count of what was sent first in each turn; the other tokens are what providers reported for all calls together. `cost_usd` covers the calls whose usage and price are known; `calls_without_usage` and `calls_without_price` are the others, and `turns_without_price` the turns that have one of these. */
export type Spent = {
  turns: number
  calls: number
  request_tokens: number
  input_tokens: number
  output_tokens: number
  cache_read_tokens: number
  cache_write_tokens: number
  cost_usd: string
  turns_without_price: number
  calls_without_usage: number
  calls_without_price: number
}

/** How long a stage took, in milliseconds. Percentiles are good to about a tenth of their value. */
export type StageRow = {
  stage: "prepare" | "model" | "tools" | "whole"
  count: number
  mean_ms: number
  p50_ms: number
  p95_ms: number
  p99_ms: number
}

/** Something that a tool read more than once: all but the last result are old, and the last call still holds them. `subject` is the file or the command. `tokens` are those of the old results. */
export type StaleResult = {
  tool: string
  subject: string
  reads: number
  tokens: number
}

/** What a session holds, true after every clear and delete. `token_count` is our own count of what was said; `usage` is what providers reported for all `call_count` calls, retries, broken answers and summaries included. `cost_usd` covers the calls whose usage and price are known, and is null when there is none; `calls_without_usage` and `calls_without_price` are the others. */
export type Statistics = {
  mode: "normal" | "thinking" | "research"
  message_count: number
  turn_count: number
  token_count: number
  fetched_context_counts: FetchedCounts
  total_fetched_items: number
  has_summary: boolean
  usage: Usage
  cost_usd: string | null
  call_count: number
  calls_without_usage: number
  calls_without_price: number
}

/** One model call: what the model said, what it wanted to call, and what came back. */
export type Step = {
  text: string
  thinking: string
  tool_calls: ToolCall[]
  results: ToolResult[]
  usage: Usage
  model: string
  finish_reason: string
  latency_ms: number
}

/** What is kept of the owner's sessions now. `texts_bytes` is about what their requests take before compression. */
export type Storage = {
  sessions: number
  turns: number
  events: number
  texts_bytes: number
  analytics_bytes: number
}

/** An event in the log of a session. */
export type StoredEvent = SessionCreatedEvent | SessionUpdatedEvent | AgentChangedEvent | ItemAddedEvent | ItemRemovedEvent | ItemReadmittedEvent | ReferenceAddedEvent | ReferenceRemovedEvent | ServerArrivedEvent | MessageAddedEvent | MessageRemovedEvent | TurnStartedEvent | RequestBuiltEvent | CallSentEvent | CallEndedEvent | ModelRepliedEvent | ToolReturnedEvent | ApprovalRequestedEvent | ApprovalDecidedEvent | QuestionAskedEvent | QuestionAnsweredEvent | ModelSampledEvent | CancelRequestedEvent | TurnFinishedEvent | SummaryMadeEvent | FetchedAddedEvent | FetchedClearedEvent | SessionContextEvent | HistoryClearedEvent | ErasedEvent

/** What to do with an item, and why. `saves_tokens` is what it would have saved over the requests that were looked at, less than zero when it would have cost more; `saves_tokens_per_request` is the mean. `edit` does it, applied to the file of `revision`; None when only a person can. `row` is all that was counted. */
export type Suggestion = {
  kind: "demote" | "promote" | "shorten" | "remove"
  agent: string
  ref: ItemRef
  why: string
  saves_tokens: number
  saves_tokens_per_request: number
  edit: Edit | null
  revision: string | null
  row: ItemRow
}

/** What could be better about an agent, what saves the most first, from so many turns. */
export type SuggestionList = {
  turns: number
  suggestions: Suggestion[]
}

/** What was said up to and including the message at `through_seq`. `preferences` hold for the whole conversation and are given up last. `evicted` is what there was no room for, the latest last; what earlier summaries evicted stands in their own events. */
export type Summary = {
  overview: string
  current_topic: string
  state: "active" | "exploring" | "troubleshooting" | "resolved" | "unknown"
  key_facts: string[]
  preferences: string[]
  evicted: string[]
  through_seq: number
  made_by: string
}

/** The conversation up to a message was summed up. */
export type SummaryMade = {
  summary: Summary
  type: "summary.made"
}

/** The conversation up to a message was summed up. */
export type SummaryMadeEvent = {
  seq: number
  at: string
  summary: Summary
  type: "summary.made"
}

/** The rolling summary of what lies before the recent messages; null while there is none. */
export type SummaryView = {
  summary: Summary | null
}

/** Instructions from the system. */
export type SystemMessageInput = {
  subagentRunId?: string | null
  id: string
  role?: "system"
  name?: string | null
  encryptedValue?: string | null
  metadata?: Record<string, unknown> | null
  content: string
  [more: string]: unknown
}

/** A note for people in the conversation. It is never sent to a model. */
export type SystemMessage = {
  content: string
  turn: number | null
  seq: number
  at: string
  role: "system"
}

/** A text part. */
export type TextPart = {
  type?: "text"
  id?: string | null
  text: string
  metadata?: unknown | null
  [more: string]: unknown
}

/** A tool the agent may call. */
export type Tool = {
  name: string
  description: string
  parameters?: unknown | null
  metadata?: Record<string, unknown> | null
  [more: string]: unknown
}

/** A call an assistant message made. Carries no subagent attribution of its own and inherits its containing message's, since several calls can share one parent. */
export type ToolCallInput = {
  id: string
  type?: "function"
  function: FunctionCallInput
  encryptedValue?: string | null
  metadata?: Record<string, unknown> | null
  [more: string]: unknown
}

/** A call that the model asked for. `offered_name` is the name the model used; `ref` is the tool behind it, or None when the model made the name up. `arguments` is the model's JSON exactly as it wrote it, which may be malformed. */
export type ToolCall = {
  id: string
  offered_name: string
  arguments: string
  ref: ItemRef | null
}

/** A call that waits for a person, and what was decided. None: not decided yet. `by` is who decided: the system where no person can be asked. */
export type ToolCallApproval = {
  call: ToolCall
  decision: "allow_once" | "allow_session" | "deny" | null
  by: "user" | "model" | "system"
}

/** What a tool returned, as a message in the conversation. Stands alone rather than composing BaseMessage, because it carries no name. */
export type ToolMessage = {
  subagentRunId?: string | null
  id: string
  role?: "tool"
  content: string | (TextPart | ImagePart | AudioPart | VideoPart | DocumentPart)[]
  toolCallId: string
  error?: string | null
  encryptedValue?: string | null
  metadata?: Record<string, unknown> | null
  [more: string]: unknown
}

/** A tool and its server. */
export type ToolName = {
  server: string
  name: string
}

/** How far a running tool call has come, in the tool's own unit. `total` None: the tool does not know it. */
export type ToolProgressEvent = {
  turn: number
  call_id: string
  progress: number
  total: number | null
  message: string
  type: "tool.progress"
}

/** What a running tool asks the user: to fill in a form, to open an address, or to let it ask the model. `message` is the server's text; of `sampling` it is what the model would be given. `schema` is the JSON Schema of a form's fields. */
export type ToolQuestion = {
  id: string
  call_id: string
  server: string
  kind: "form" | "url" | "sampling"
  message: string
  schema: Record<string, unknown>
  url: string
}

/** What came back from a tool call, as the text that the model is given, and images and documents beside it. `links` are the addresses of the server's resources that it named. */
export type ToolResultInput = {
  call_id: string
  content: string
  is_error?: boolean
  latency_ms?: number
  attachments?: AttachmentInput[]
  links?: string[]
}

/** What came back from a tool call, as the text that the model is given, and images and documents beside it. `links` are the addresses of the server's resources that it named. */
export type ToolResult = {
  call_id: string
  content: string
  is_error: boolean
  latency_ms: number
  attachments: Attachment[]
  links: string[]
}

/** One tool call ended, well or not. */
export type ToolReturned = {
  turn: number
  result: ToolResult
  type: "tool.returned"
}

/** One tool call ended, well or not. */
export type ToolReturnedEvent = {
  seq: number
  at: string
  turn: number
  result: ToolResult
  type: "tool.returned"
}

/** How a tool is included and permitted. What is null is as its server says. */
export type ToolSetting = {
  include?: "always" | "manual" | "agent" | null
  permission?: "required" | "not_required" | "forbidden" | null
}

/** A tool: how it is included and permitted, and what of that is its own setting; null: as its server says. */
export type ToolView = {
  name: string
  description: string
  include: "always" | "manual" | "agent"
  permission: "required" | "not_required" | "forbidden"
  own_include: "always" | "manual" | "agent" | null
  own_permission: "required" | "not_required" | "forbidden" | null
}

/** What would be better, for rules and references and for tools. Nothing is changed by it. */
export type Tuning = {
  proposals: Proposal[]
}

/** Why a turn failed, for the user: a stable code, what happened, what to do next. `status` is what the model's provider answered with, `retry_after_s` how long it asked to wait, where known. */
export type TurnError = {
  code: string
  message: string
  partial: string
  status: number | null
  retry_after_s: number | null
}

/** A turn ended. `sources` are the documents its answer could draw on, `related` the titles they point to. */
export type TurnFinished = {
  turn: number
  outcome: "completed" | "failed" | "cancelled" | "interrupted"
  error: TurnError | null
  sources: Source[]
  related: string[]
  type: "turn.finished"
}

/** A turn ended. `sources` are the documents its answer could draw on, `related` the titles they point to. */
export type TurnFinishedEvent = {
  seq: number
  at: string
  turn: number
  outcome: "completed" | "failed" | "cancelled" | "interrupted"
  error: TurnError | null
  sources: Source[]
  related: string[]
  type: "turn.finished"
}

/** What a turn's model was given and what that cost, in brief. `context_tokens` is our own count of the request. `usage` and `cost_usd` are of all calls of the turn, as a `CallList` has them; `input_cost_usd` is what the input took of the cost. `built_in` counts the calls to built-in models, whose tokens no provider reports. `left_out` counts the items that were considered and not sent. `summarised` tells that a summary stood for earlier messages. */
export type TurnReceipt = {
  turn: number
  at: string
  outcome: "completed" | "failed" | "cancelled" | "interrupted" | "waiting" | "running"
  model: string
  context_tokens: number
  window_tokens: number
  reply_tokens: number
  parts: PartTokens[]
  items: ReceiptItem[]
  left_out: number
  summarised: boolean
  degraded: boolean
  calls: number
  usage: Usage
  cost_usd: string | null
  input_cost_usd: string | null
  without_usage: number
  without_price: number
  built_in: number
  duration_ms: number
}

/** Turns in their order, those left out whose request is not on record. `next` continues the list; null: its end. */
export type TurnReceipts = {
  turns: TurnReceipt[]
  next: number | null
}

/** A turn with everything that happened from its start to the start of the next. */
export type TurnRecord = {
  session_id: string
  turn: number
  outcome: "completed" | "failed" | "cancelled" | "interrupted" | "waiting" | "running"
  text: string
  messages: (UserMessage | SystemMessage | ErrorMessage | ApprovalMessage | AssistantMessage)[]
  approvals: ToolCall[]
  questions: ToolQuestion[]
  request_context: RequestContext | null
  seq: number
  sources: Source[]
  confidence: number | null
  context_debug: ContextDebug | null
  events: StoredEvent[]
}

/** The user's message arrived, byte for byte, with its files. `key` is the caller's idempotency key, if there was one. `resumed` tells that the session had been left alone, so the model is to be reminded of what it was working on. */
export type TurnStarted = {
  turn: number
  message: string
  key: string | null
  tokens: number
  resumed: boolean
  attachments: Attachment[]
  type: "turn.started"
}

/** The user's message arrived, byte for byte, with its files. `key` is the caller's idempotency key, if there was one. `resumed` tells that the session had been left alone, so the model is to be reminded of what it was working on. */
export type TurnStartedEvent = {
  seq: number
  at: string
  turn: number
  message: string
  key: string | null
  tokens: number
  resumed: boolean
  attachments: Attachment[]
  type: "turn.started"
}

/** What a turn cost, call by call and together. `conversation` is about the part of it that grows. */
export type TurnUsage = {
  turn: number
  model: string
  calls: CallUsage[]
  usage: Usage
  cost_usd: string | null
  conversation: UsageAnalysis
}

/** Every item that a turn's model was given, and whether the answer made use of it. */
export type TurnUse = {
  items: ItemUse[]
}

/** A turn: how it ended or stands, what was said, and what the model was given. `text` is what the assistant said so far. `approvals` are the tool calls that wait for a decision, `questions` what a running tool asks. `seq` is how far the session's log had come. `sources` are the documents that the answer could draw on, and `confidence` is the score of the best of them; null when there are none. `context_debug` is what the model was told of the conversation. It and `request_context` are null when the turn failed before a request could be built. */
export type TurnView = {
  session_id: string
  turn: number
  outcome: "completed" | "failed" | "cancelled" | "interrupted" | "waiting" | "running"
  text: string
  messages: (UserMessage | SystemMessage | ErrorMessage | ApprovalMessage | AssistantMessage)[]
  approvals: ToolCall[]
  questions: ToolQuestion[]
  request_context: RequestContext | null
  seq: number
  sources: Source[]
  confidence: number | null
  context_debug: ContextDebug | null
}

/** Bytes referenced by URL, fetched by whoever needs them. */
export type UrlSource = {
  type?: "url"
  value: string
  mimeType?: string | null
  [more: string]: unknown
}

/** Tokens that the provider reported for one model call. Zero where it reported nothing: no call is without input. Tokens that were read from its cache or written to it are part of the input. `cache_write_1h_tokens` are those of the written ones that it keeps for an hour, which cost more. */
export type Usage = {
  input_tokens: number
  output_tokens: number
  cache_read_tokens: number
  cache_write_tokens: number
  cache_write_1h_tokens: number
}

/** How large a conversation's context has become. `cost_estimate` is in US dollars, None when the price is unknown. `context_size` is in characters. */
export type UsageAnalysis = {
  context_size: number
  estimated_tokens: number
  messages_stored: number
  is_compressed: boolean
  cost_estimate: string | null
}

/** A message from the person using the application. */
export type UserMessageInput = {
  subagentRunId?: string | null
  id: string
  role?: "user"
  name?: string | null
  encryptedValue?: string | null
  metadata?: Record<string, unknown> | null
  content: string | (TextPart | ImagePart | AudioPart | VideoPart | DocumentPart)[]
  [more: string]: unknown
}

/** What the user wrote, byte for byte, and the files that came with it. */
export type UserMessage = {
  content: string
  attachments: Attachment[]
  turn: number | null
  seq: number
  at: string
  role: "user"
}

/** One earlier message as text. */
export type Utterance = {
  role: "user" | "assistant"
  text: string
}

/** How a test went. `degraded` says what the selection had to do without. */
export type Verdict = {
  test: ContextTest
  passed: boolean
  selected: Selected[]
  breaches: Breach[]
  degraded: string[]
}

/** A video part. */
export type VideoPart = {
  type?: "video"
  id?: string | null
  source: DataSource | UrlSource | FileSource
  metadata?: unknown | null
  [more: string]: unknown
}

/** What a stream of a session sends: stored events, text while it is written, the progress of tools, and news about the stream. `session.context` with reason `load` is not stored and has neither `seq` nor `at`. */
export type WatchedEvent = SessionCreatedEvent | SessionUpdatedEvent | AgentChangedEvent | ItemAddedEvent | ItemRemovedEvent | ItemReadmittedEvent | ReferenceAddedEvent | ReferenceRemovedEvent | ServerArrivedEvent | MessageAddedEvent | MessageRemovedEvent | TurnStartedEvent | RequestBuiltEvent | CallSentEvent | CallEndedEvent | ModelRepliedEvent | ToolReturnedEvent | ApprovalRequestedEvent | ApprovalDecidedEvent | QuestionAskedEvent | QuestionAnsweredEvent | ModelSampledEvent | CancelRequestedEvent | TurnFinishedEvent | SummaryMadeEvent | FetchedAddedEvent | FetchedClearedEvent | SessionContextEvent | HistoryClearedEvent | ErasedEvent | DeltaEvent | ToolProgressEvent | MissedEvent | SessionDeletedEvent

/** One difference between what was built and what was sent, and what made it. */
export type WireChange = {
  where: string
  built: string
  sent: string
  why: string
}

/** The head of an HTTP request: where it went and with which headers. Values of keys are taken out. */
export type WireHead = {
  method: string
  url: string
  headers: unknown[][]
}

/** A stretch of a body, in characters, and whose it is. Stretches follow one another without a gap. */
export type WireSpan = {
  start: number
  end: number
  kind: "message" | "item" | "tool" | "setting" | "step" | "model" | "mapping"
  owner: string
}

/** A question that the selection got wrong: what it took without need, and what it should have taken. */
export type Wrong = {
  name: string
  needless: ItemRef[]
  missed: ItemRef[]
}

/** The essence of a session's calls. `cache` is what the calls read from the provider's cache, and what broke the prefix. `last` is the number of the last call that asked for an answer; `parts`, `tools`, `repeated` and `stale` are about it, and `window_tokens` is what its model can take in; null when that is not known. `subagents` are the sessions that this one's agent began, by id. */
export type XrayReport = {
  session: SessionView
  calls: SentCall[]
  together: CallList
  cache: CacheReport
  last: number | null
  window_tokens: number | null
  parts: SentPart[]
  tools: OfferedToolUse[]
  repeated: RepeatedText[]
  stale: StaleResult[]
  subagents: string[]
}

/** What each operation takes and answers. */
export interface Operations {
  list_agents: {
    path: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: AgentList
  }
  create_agent: {
    path: Record<string, never>
    query: Record<string, never>
    body: NewAgent
    answer: AgentView
  }
  read_agent: {
    path: { agent: string }
    query: Record<string, never>
    body: undefined
    answer: AgentView
  }
  rename_agent: {
    path: { agent: string }
    query: Record<string, never>
    body: AgentChange
    answer: AgentView
  }
  run_agent: {
    path: { agent: string }
    query: Record<string, never>
    body: RunAgentInput
    answer: undefined
  }
  evaluate_agent: {
    path: { agent: string }
    query: { everyone?: boolean }
    body: LabelsBody
    answer: Evaluation
  }
  watch_agent: {
    path: { agent: string }
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  delete_agent_file: {
    path: { agent: string; file: string }
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  read_agent_file: {
    path: { agent: string; file: string }
    query: Record<string, never>
    body: undefined
    answer: FileView
  }
  put_agent_file: {
    path: { agent: string; file: string }
    query: Record<string, never>
    body: RawFile
    answer: FileView
  }
  list_agent_items: {
    path: { agent: string }
    query: { type?: "rule" | "reference" | "tool" | null; include?: "always" | "manual" | "agent" | null; server?: string | null; q?: string | null; limit?: number; cursor?: string | null }
    body: undefined
    answer: ItemList
  }
  create_agent_item: {
    path: { agent: string }
    query: { also_in?: string | null }
    body: NewItem
    answer: ItemDetail
  }
  delete_agent_item: {
    path: { agent: string; type: "rule" | "reference"; name: string }
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  read_agent_item: {
    path: { agent: string; type: "rule" | "reference" | "tool"; name: string }
    query: { server?: string | null }
    body: undefined
    answer: ItemDetail
  }
  change_agent_item: {
    path: { agent: string; type: "rule" | "reference"; name: string }
    query: { also_in?: string | null }
    body: ItemEdit
    answer: ItemDetail
  }
  put_agent_item: {
    path: { agent: string; type: "rule" | "reference"; name: string }
    query: { also_in?: string | null }
    body: RawFile
    answer: ItemDetail
  }
  read_agent_manifest: {
    path: { agent: string }
    query: Record<string, never>
    body: undefined
    answer: FileView
  }
  put_agent_manifest: {
    path: { agent: string }
    query: Record<string, never>
    body: RawFile
    answer: FileView
  }
  list_agent_problems: {
    path: { agent: string }
    query: Record<string, never>
    body: undefined
    answer: ProblemList
  }
  list_agent_prompts: {
    path: { agent: string }
    query: Record<string, never>
    body: undefined
    answer: PromptList
  }
  delete_agent_prompt: {
    path: { agent: string; prompt: string }
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  read_agent_prompt: {
    path: { agent: string; prompt: string }
    query: Record<string, never>
    body: undefined
    answer: FileView
  }
  put_agent_prompt: {
    path: { agent: string; prompt: string }
    query: Record<string, never>
    body: RawFile
    answer: FileView
  }
  change_agent_search: {
    path: { agent: string }
    query: Record<string, never>
    body: DomainChanges
    answer: FileView
  }
  search_agent_items: {
    path: { agent: string }
    query: Record<string, never>
    body: Search
    answer: FoundItems
  }
  list_agent_servers: {
    path: { agent: string }
    query: { settle_s?: number }
    body: undefined
    answer: ServerList
  }
  read_agent_server: {
    path: { agent: string; server: string }
    query: Record<string, never>
    body: undefined
    answer: ServerDetail
  }
  change_agent_server: {
    path: { agent: string; server: string }
    query: { also_in?: string | null }
    body: ServerChange
    answer: ServerDetail
  }
  list_suggestions: {
    path: { agent: string }
    query: { since?: string | null; everyone?: boolean }
    body: undefined
    answer: SuggestionList
  }
  apply_suggestion: {
    path: { agent: string }
    query: { also_in?: string | null }
    body: EditBody
    answer: Applied
  }
  list_tests: {
    path: { agent: string }
    query: Record<string, never>
    body: undefined
    answer: ContextTests
  }
  run_agent_tests: {
    path: { agent: string }
    query: Record<string, never>
    body: undefined
    answer: Report
  }
  tune_agent: {
    path: { agent: string }
    query: { everyone?: boolean }
    body: LabelsBody
    answer: Tuning
  }
  read_analytics: {
    path: Record<string, never>
    query: { since?: string | null; until?: string | null; agent?: string | null; model?: string | null; everyone?: boolean }
    body: undefined
    answer: Dashboard
  }
  export_analytics: {
    path: { listed: "days" | "models" | "agents" | "purposes" | "parts" | "items" | "scores" | "latency" | "sources" | "rebases" }
    query: { since?: string | null; until?: string | null; agent?: string | null; model?: string | null; everyone?: boolean }
    body: undefined
    answer: undefined
  }
  read_outside_calls: {
    path: Record<string, never>
    query: { day?: string | null }
    body: undefined
    answer: OutsideCallList
  }
  read_costs: {
    path: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: CostLimitsView
  }
  list_roots: {
    path: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: RootList
  }
  share_folder: {
    path: Record<string, never>
    query: Record<string, never>
    body: SharedFolder
    answer: RootList
  }
  read_file: {
    path: Record<string, never>
    query: { path: string }
    body: undefined
    answer: OpenedFile
  }
  write_file: {
    path: Record<string, never>
    query: { path: string }
    body: FileContent
    answer: OpenedFile
  }
  read_diff: {
    path: Record<string, never>
    query: { path: string; base?: string }
    body: undefined
    answer: Diff
  }
  list_folder: {
    path: Record<string, never>
    query: { path: string; limit?: number; cursor?: string | null }
    body: undefined
    answer: FolderView
  }
  log_in: {
    path: Record<string, never>
    query: Record<string, never>
    body: Login
    answer: Me
  }
  log_out: {
    path: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  read_me: {
    path: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: Me
  }
  list_known_models: {
    path: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: KnownModels
  }
  check_model: {
    path: { model: string }
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  take_spans: {
    path: Record<string, never>
    query: Record<string, never>
    body: Record<string, unknown>
    answer: Record<string, unknown>
  }
  delete_provider_key: {
    path: { provider: string }
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  put_provider_key: {
    path: { provider: string }
    query: Record<string, never>
    body: GivenKey
    answer: undefined
  }
  find: {
    path: Record<string, never>
    query: { q: string; agent?: string | null; limit?: number; cursor?: string | null }
    body: undefined
    answer: FindView
  }
  list_sessions: {
    path: Record<string, never>
    query: { agent?: string | null; q?: string | null; limit?: number; cursor?: string | null }
    body: undefined
    answer: SessionListView
  }
  create_session: {
    path: Record<string, never>
    query: Record<string, never>
    body: NewSession | null
    answer: SessionView
  }
  import_session: {
    path: Record<string, never>
    query: { name?: string | null }
    body: Partial<SessionExport>
    answer: SessionView
  }
  delete_session: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  read_session: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: SessionView
  }
  update_session: {
    path: { session_id: string }
    query: Record<string, never>
    body: SessionChange
    answer: ChangedSession
  }
  answer_question: {
    path: { session_id: string }
    query: Record<string, never>
    body: QuestionAnswer
    answer: SessionView
  }
  decide: {
    path: { session_id: string }
    query: Record<string, never>
    body: Decisions
    answer: TurnView
  }
  read_attachment_file: {
    path: { session_id: string; blob: string }
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  get_session_cache: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: CacheReport
  }
  list_session_calls: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: CallList
  }
  get_session_call: {
    path: { session_id: string; number: number }
    query: Record<string, never>
    body: undefined
    answer: CallRecord
  }
  compare_calls: {
    path: { session_id: string; number: number }
    query: { with: number }
    body: undefined
    answer: CallComparison
  }
  cancel_turn: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: SessionView
  }
  watch_session: {
    path: { session_id: string }
    query: { after?: number | null }
    body: undefined
    answer: undefined
  }
  exclude_session_item: {
    path: { session_id: string }
    query: Record<string, never>
    body: ItemRefInput
    answer: ItemsChange
  }
  readmit_session_item: {
    path: { session_id: string; type: "rule" | "reference" | "tool"; name: string }
    query: { server?: string | null }
    body: undefined
    answer: ItemsChange
  }
  export_session: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: SessionExport
  }
  clear_fetched: {
    path: { session_id: string }
    query: { kind?: "web_search" | "page" | null }
    body: undefined
    answer: FetchedList
  }
  list_fetched: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: FetchedList
  }
  add_fetched: {
    path: { session_id: string }
    query: Record<string, never>
    body: FetchedIn
    answer: FetchedList
  }
  fork_session: {
    path: { session_id: string }
    query: Record<string, never>
    body: Fork | null
    answer: SessionView
  }
  clear_history: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: SessionView
  }
  list_session_items: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: ItemsView
  }
  add_session_item: {
    path: { session_id: string }
    query: Record<string, never>
    body: ItemRefInput
    answer: ItemsChange
  }
  remove_session_item: {
    path: { session_id: string; type: "rule" | "reference" | "tool"; name: string }
    query: { server?: string | null }
    body: undefined
    answer: ItemsChange
  }
  list_messages: {
    path: { session_id: string }
    query: { before?: number | null; limit?: number }
    body: undefined
    answer: MessagePage
  }
  send_message: {
    path: { session_id: string }
    query: Record<string, never>
    body: NewMessage
    answer: TurnView
  }
  record_message: {
    path: { session_id: string }
    query: Record<string, never>
    body: SaidMessage
    answer: SessionView
  }
  remove_message: {
    path: { session_id: string; seq: number }
    query: Record<string, never>
    body: undefined
    answer: ErasedSession
  }
  list_observed: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: Observed
  }
  promote_observed: {
    path: { session_id: string }
    query: Record<string, never>
    body: Promotion
    answer: ChangedSession
  }
  push_page: {
    path: { session_id: string }
    query: Record<string, never>
    body: PageIn
    answer: FetchedList
  }
  fetch_page: {
    path: { session_id: string }
    query: Record<string, never>
    body: PageAddress
    answer: FetchedList
  }
  preview: {
    path: { session_id: string }
    query: { texts?: boolean }
    body: Draft
    answer: Request
  }
  list_own_references: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: ReferencesView
  }
  add_own_reference: {
    path: { session_id: string }
    query: Record<string, never>
    body: FileBody
    answer: ReferencesView
  }
  remove_own_reference: {
    path: { session_id: string; name: string }
    query: Record<string, never>
    body: undefined
    answer: ReferencesView
  }
  answer_calls: {
    path: { session_id: string }
    query: Record<string, never>
    body: Results
    answer: TurnView
  }
  share_session: {
    path: { session_id: string }
    query: { redacted?: boolean }
    body: undefined
    answer: SharedSession
  }
  find_similar: {
    path: { session_id: string }
    query: { message: string }
    body: undefined
    answer: Similar
  }
  read_statistics: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: Statistics
  }
  read_summary: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: SummaryView
  }
  refresh_summary: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: SummaryView
  }
  list_turns: {
    path: { session_id: string }
    query: { first?: number; limit?: number }
    body: undefined
    answer: TurnReceipts
  }
  read_turn: {
    path: { session_id: string; turn: number }
    query: Record<string, never>
    body: undefined
    answer: TurnRecord
  }
  list_calls: {
    path: { session_id: string; turn: number }
    query: Record<string, never>
    body: undefined
    answer: CallList
  }
  get_call: {
    path: { session_id: string; turn: number; number: number }
    query: Record<string, never>
    body: undefined
    answer: CallRecord
  }
  compare_turns: {
    path: { session_id: string; turn: number }
    query: { with: number; session?: string | null }
    body: undefined
    answer: Comparison
  }
  read_turn_context: {
    path: { session_id: string; turn: number }
    query: Record<string, never>
    body: undefined
    answer: PastContext
  }
  debug_turn: {
    path: { session_id: string; turn: number }
    query: { topic?: string | null; text?: boolean }
    body: undefined
    answer: ContextDebug
  }
  explain_turn: {
    path: { session_id: string; turn: number }
    query: Record<string, never>
    body: undefined
    answer: ExplanationList
  }
  explain_item: {
    path: { session_id: string; turn: number; type: "rule" | "reference" | "tool"; name: string }
    query: { server?: string | null }
    body: undefined
    answer: Explanation
  }
  read_sent_item: {
    path: { session_id: string; turn: number; type: "rule" | "reference" | "tool"; name: string }
    query: { server?: string | null }
    body: undefined
    answer: SentItem
  }
  rebuild_turn: {
    path: { session_id: string; turn: number }
    query: Record<string, never>
    body: undefined
    answer: Rebuilt
  }
  replay_turn: {
    path: { session_id: string; turn: number }
    query: Record<string, never>
    body: Difference
    answer: Rerun
  }
  read_turn_request: {
    path: { session_id: string; turn: number }
    query: Record<string, never>
    body: undefined
    answer: Request
  }
  retry_turn: {
    path: { session_id: string; turn: number }
    query: Record<string, never>
    body: undefined
    answer: TurnView
  }
  create_test: {
    path: { session_id: string; turn: number }
    query: Record<string, never>
    body: NewTest
    answer: SavedTest
  }
  read_turn_usage: {
    path: { session_id: string; turn: number }
    query: Record<string, never>
    body: undefined
    answer: TurnUsage
  }
  read_turn_use: {
    path: { session_id: string; turn: number }
    query: Record<string, never>
    body: undefined
    answer: TurnUse
  }
  xray_session: {
    path: { session_id: string }
    query: Record<string, never>
    body: undefined
    answer: XrayReport
  }
  recording_status: {
    path: Record<string, never>
    query: Record<string, never>
    body: undefined
    answer: RecordingStatus
  }
}

/** Where each operation is. */
export const OPERATIONS = {
  list_agents: ["GET", "/api/agents"],
  create_agent: ["POST", "/api/agents"],
  read_agent: ["GET", "/api/agents/{agent}"],
  rename_agent: ["PATCH", "/api/agents/{agent}"],
  run_agent: ["POST", "/api/agents/{agent}/ag-ui"],
  evaluate_agent: ["POST", "/api/agents/{agent}/evaluation"],
  watch_agent: ["GET", "/api/agents/{agent}/events"],
  delete_agent_file: ["DELETE", "/api/agents/{agent}/files/{file}"],
  read_agent_file: ["GET", "/api/agents/{agent}/files/{file}"],
  put_agent_file: ["PUT", "/api/agents/{agent}/files/{file}"],
  list_agent_items: ["GET", "/api/agents/{agent}/items"],
  create_agent_item: ["POST", "/api/agents/{agent}/items"],
  delete_agent_item: ["DELETE", "/api/agents/{agent}/items/{type}/{name}"],
  read_agent_item: ["GET", "/api/agents/{agent}/items/{type}/{name}"],
  change_agent_item: ["PATCH", "/api/agents/{agent}/items/{type}/{name}"],
  put_agent_item: ["PUT", "/api/agents/{agent}/items/{type}/{name}"],
  read_agent_manifest: ["GET", "/api/agents/{agent}/manifest"],
  put_agent_manifest: ["PUT", "/api/agents/{agent}/manifest"],
  list_agent_problems: ["GET", "/api/agents/{agent}/problems"],
  list_agent_prompts: ["GET", "/api/agents/{agent}/prompts"],
  delete_agent_prompt: ["DELETE", "/api/agents/{agent}/prompts/{prompt}"],
  read_agent_prompt: ["GET", "/api/agents/{agent}/prompts/{prompt}"],
  put_agent_prompt: ["PUT", "/api/agents/{agent}/prompts/{prompt}"],
  change_agent_search: ["PATCH", "/api/agents/{agent}/search"],
  search_agent_items: ["POST", "/api/agents/{agent}/search"],
  list_agent_servers: ["GET", "/api/agents/{agent}/servers"],
  read_agent_server: ["GET", "/api/agents/{agent}/servers/{server}"],
  change_agent_server: ["PATCH", "/api/agents/{agent}/servers/{server}"],
  list_suggestions: ["GET", "/api/agents/{agent}/suggestions"],
  apply_suggestion: ["POST", "/api/agents/{agent}/suggestions"],
  list_tests: ["GET", "/api/agents/{agent}/tests"],
  run_agent_tests: ["POST", "/api/agents/{agent}/tests/run"],
  tune_agent: ["POST", "/api/agents/{agent}/tuning"],
  read_analytics: ["GET", "/api/analytics"],
  export_analytics: ["GET", "/api/analytics/{listed}.csv"],
  read_outside_calls: ["GET", "/api/calls"],
  read_costs: ["GET", "/api/costs"],
  list_roots: ["GET", "/api/files"],
  share_folder: ["POST", "/api/files"],
  read_file: ["GET", "/api/files/content"],
  write_file: ["PUT", "/api/files/content"],
  read_diff: ["GET", "/api/files/diff"],
  list_folder: ["GET", "/api/files/list"],
  log_in: ["POST", "/api/login"],
  log_out: ["POST", "/api/logout"],
  read_me: ["GET", "/api/me"],
  list_known_models: ["GET", "/api/models"],
  check_model: ["GET", "/api/models/{model}"],
  take_spans: ["POST", "/api/otlp/v1/traces"],
  delete_provider_key: ["DELETE", "/api/providers/{provider}/key"],
  put_provider_key: ["PUT", "/api/providers/{provider}/key"],
  find: ["GET", "/api/search"],
  list_sessions: ["GET", "/api/sessions"],
  create_session: ["POST", "/api/sessions"],
  import_session: ["POST", "/api/sessions/import"],
  delete_session: ["DELETE", "/api/sessions/{session_id}"],
  read_session: ["GET", "/api/sessions/{session_id}"],
  update_session: ["PATCH", "/api/sessions/{session_id}"],
  answer_question: ["POST", "/api/sessions/{session_id}/answers"],
  decide: ["POST", "/api/sessions/{session_id}/approvals"],
  read_attachment_file: ["GET", "/api/sessions/{session_id}/attachments/{blob}"],
  get_session_cache: ["GET", "/api/sessions/{session_id}/cache"],
  list_session_calls: ["GET", "/api/sessions/{session_id}/calls"],
  get_session_call: ["GET", "/api/sessions/{session_id}/calls/{number}"],
  compare_calls: ["GET", "/api/sessions/{session_id}/calls/{number}/compare"],
  cancel_turn: ["POST", "/api/sessions/{session_id}/cancel"],
  watch_session: ["GET", "/api/sessions/{session_id}/events"],
  exclude_session_item: ["POST", "/api/sessions/{session_id}/excluded"],
  readmit_session_item: ["DELETE", "/api/sessions/{session_id}/excluded/{type}/{name}"],
  export_session: ["GET", "/api/sessions/{session_id}/export"],
  clear_fetched: ["DELETE", "/api/sessions/{session_id}/fetched"],
  list_fetched: ["GET", "/api/sessions/{session_id}/fetched"],
  add_fetched: ["POST", "/api/sessions/{session_id}/fetched"],
  fork_session: ["POST", "/api/sessions/{session_id}/fork"],
  clear_history: ["DELETE", "/api/sessions/{session_id}/history"],
  list_session_items: ["GET", "/api/sessions/{session_id}/items"],
  add_session_item: ["POST", "/api/sessions/{session_id}/items"],
  remove_session_item: ["DELETE", "/api/sessions/{session_id}/items/{type}/{name}"],
  list_messages: ["GET", "/api/sessions/{session_id}/messages"],
  send_message: ["POST", "/api/sessions/{session_id}/messages"],
  record_message: ["POST", "/api/sessions/{session_id}/messages/record"],
  remove_message: ["DELETE", "/api/sessions/{session_id}/messages/{seq}"],
  list_observed: ["GET", "/api/sessions/{session_id}/observed"],
  promote_observed: ["POST", "/api/sessions/{session_id}/observed"],
  push_page: ["POST", "/api/sessions/{session_id}/pages"],
  fetch_page: ["POST", "/api/sessions/{session_id}/pages/fetch"],
  preview: ["POST", "/api/sessions/{session_id}/preview"],
  list_own_references: ["GET", "/api/sessions/{session_id}/references"],
  add_own_reference: ["POST", "/api/sessions/{session_id}/references"],
  remove_own_reference: ["DELETE", "/api/sessions/{session_id}/references/{name}"],
  answer_calls: ["POST", "/api/sessions/{session_id}/results"],
  share_session: ["GET", "/api/sessions/{session_id}/share"],
  find_similar: ["GET", "/api/sessions/{session_id}/similar"],
  read_statistics: ["GET", "/api/sessions/{session_id}/statistics"],
  read_summary: ["GET", "/api/sessions/{session_id}/summary"],
  refresh_summary: ["POST", "/api/sessions/{session_id}/summary"],
  list_turns: ["GET", "/api/sessions/{session_id}/turns"],
  read_turn: ["GET", "/api/sessions/{session_id}/turns/{turn}"],
  list_calls: ["GET", "/api/sessions/{session_id}/turns/{turn}/calls"],
  get_call: ["GET", "/api/sessions/{session_id}/turns/{turn}/calls/{number}"],
  compare_turns: ["GET", "/api/sessions/{session_id}/turns/{turn}/compare"],
  read_turn_context: ["GET", "/api/sessions/{session_id}/turns/{turn}/context"],
  debug_turn: ["GET", "/api/sessions/{session_id}/turns/{turn}/debug"],
  explain_turn: ["GET", "/api/sessions/{session_id}/turns/{turn}/explain"],
  explain_item: ["GET", "/api/sessions/{session_id}/turns/{turn}/explain/{type}/{name}"],
  read_sent_item: ["GET", "/api/sessions/{session_id}/turns/{turn}/items/{type}/{name}"],
  rebuild_turn: ["GET", "/api/sessions/{session_id}/turns/{turn}/replay"],
  replay_turn: ["POST", "/api/sessions/{session_id}/turns/{turn}/replay"],
  read_turn_request: ["GET", "/api/sessions/{session_id}/turns/{turn}/request"],
  retry_turn: ["POST", "/api/sessions/{session_id}/turns/{turn}/retry"],
  create_test: ["POST", "/api/sessions/{session_id}/turns/{turn}/test"],
  read_turn_usage: ["GET", "/api/sessions/{session_id}/turns/{turn}/usage"],
  read_turn_use: ["GET", "/api/sessions/{session_id}/turns/{turn}/use"],
  xray_session: ["GET", "/api/sessions/{session_id}/xray"],
  recording_status: ["GET", "/api/xray"],
} as const
