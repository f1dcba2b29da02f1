import { expect, test } from 'vitest'
import type { AssistantMessage, Step } from '../api/schema.ts'
import { lastSeen } from './seen.ts'

const usage = {
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cache_write_1h_tokens: 0,
}

function said(turn: number, tool: string, args: object, content: string, is_error = false): AssistantMessage {
  const step: Step = {
    text: '',
    thinking: '',
    tool_calls: [{ id: 'c', offered_name: tool, arguments: JSON.stringify(args), ref: null }],
    results: [{ call_id: 'c', content, is_error, latency_ms: 0, attachments: [], links: [] }],
    usage,
    model: '',
    finish_reason: '',
    latency_ms: 0,
  }
  return {
    role: 'assistant',
    model_reply: { steps: [step] },
    request: null,
    outcome: 'completed',
    sources: [],
    related: [],
    turn,
    seq: turn,
    at: '',
  }
}

const PATH = '/srv/a.md'

test('the last text that a tool gave for the path counts', () => {
  const messages = [
    said(1, 'read_file', { path: PATH }, 'one\ntwo\n'),
    said(2, 'read_file', { path: PATH }, 'one\n2\n'),
    said(3, 'read_file', { path: '/srv/b.md' }, 'one\nx'),
  ]
  expect(lastSeen(messages, null, PATH, 'one\nthree\n')).toEqual({ text: 'one\n2\n', tool: 'read_file', turn: 2 })
})

test('what the agent wrote itself is what it saw', () => {
  const messages = [said(1, 'write_file', { path: PATH, content: 'one\ntwo\n' }, 'saved')]
  expect(lastSeen(messages, null, PATH, 'one\nthree\n')?.text).toBe('one\ntwo\n')
})

test('numbers of lines are no part of the text', () => {
  expect(lastSeen([said(1, 'cat', { file: PATH }, '  1\tone\n  2\ttwo')], null, PATH, 'one\n')?.text).toBe('one\ntwo')
})

test('a call that failed, or said something else, shows nothing', () => {
  const messages = [
    said(1, 'read_file', { path: PATH }, 'one\ntwo', true),
    said(2, 'delete_file', { path: PATH }, 'done'),
  ]
  expect(lastSeen(messages, null, PATH, 'one\n')).toBeNull()
})
