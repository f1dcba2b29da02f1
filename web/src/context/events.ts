/** What comes over a session's event stream: the log's events, text on its way, and news about the stream itself. */

import type {
  ApprovalDecided,
  ApprovalRequested,
  CancelRequested,
  Erased,
  FetchedAdded,
  FetchedCleared,
  HistoryCleared,
  ItemAdded,
  ItemRemoved,
  MessageAdded,
  ModelReplied,
  RequestBuilt,
  ServerArrived,
  SessionCreated,
  SessionUpdated,
  SummaryMade,
  ToolReturned,
  TurnFinished,
  TurnStarted,
} from '../api/schema.ts'

export type ContextSets = Record<string, string[]>

export type ContextEvent = {
  type: 'session.context'
  data: { reason: 'load' | 'resume' | 'changed'; context: ContextSets; setName?: string }
}

type LogEvent =
  | ApprovalDecided
  | ApprovalRequested
  | CancelRequested
  | ContextEvent
  | Erased
  | FetchedAdded
  | FetchedCleared
  | HistoryCleared
  | ItemAdded
  | ItemRemoved
  | MessageAdded
  | ModelReplied
  | RequestBuilt
  | ServerArrived
  | SessionCreated
  | SessionUpdated
  | SummaryMade
  | ToolReturned
  | TurnFinished
  | TurnStarted

/** An event in its place in the log. */
export type Recorded = LogEvent & { seq: number; at: string }

export type Delta = { type: 'reply.delta'; turn: number; text: string; kind: 'text' | 'thinking' }
export type Missed = { type: 'missed'; after: number }
export type SessionDeleted = { type: 'session.deleted' }

/** Everything that the stream may say. The context as it is after loading has no place in the log. */
export type Watched = Recorded | ContextEvent | Delta | Missed | SessionDeleted
