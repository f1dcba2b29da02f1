// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { WatchedEvent } from '../api/schema.ts'
import { waitMs, watch, type Listener } from './watch.ts'

class Socket {
  static all: Socket[] = []
  onopen?: () => void
  onmessage?: (event: { data: string }) => void
  onclose?: (event: { code: number }) => void
  closed = false
  static readonly CONNECTING = 0
  readyState = 1
  readonly url: string

  constructor(url: string) {
    this.url = url
    Socket.all.push(this)
  }

  close(): void {
    this.closed = true
  }
}

function listening(): Listener & { said: unknown[]; seq: number } {
  const said: unknown[] = []
  const listener = {
    said,
    seq: 3,
    after: () => listener.seq,
    onConnection: (connection: string) => void said.push(connection),
    onBegin: () => void said.push('begin'),
    onEvent: (event: WatchedEvent) => void said.push(event),
  }
  return listener
}

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('WebSocket', Socket)
  Socket.all = []
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('a lost connection goes on after what was heard last', () => {
  const listener = listening()
  const stop = watch('ses 1', listener)
  Socket.all[0]!.onopen!()
  Socket.all[0]!.onmessage!({ data: '{"seq":4}' })
  listener.seq = 4
  Socket.all[0]!.onclose!({ code: 1006 })
  vi.runOnlyPendingTimers()
  Socket.all[1]!.onopen!()

  expect(Socket.all.map(({ url }) => url)).toEqual([
    'ws://localhost:3000/api/sessions/ses%201/events?after=3',
    'ws://localhost:3000/api/sessions/ses%201/events?after=4',
  ])
  expect(listener.said).toEqual(['connecting', 'begin', 'live', { seq: 4 }, 'offline', 'begin', 'live'])
  stop()
})

test('a session that is gone is not asked for again', () => {
  const listener = listening()
  watch('ses_1', listener)
  Socket.all[0]!.onclose!({ code: 4404 })
  vi.runAllTimers()
  dispatchEvent(new Event('online'))

  expect(listener.said).toEqual(['connecting', 'gone'])
  expect(Socket.all).toHaveLength(1)
})

test('nothing is heard after stopping', () => {
  const listener = listening()
  const stop = watch('ses_1', listener)
  stop()
  Socket.all[0]!.onmessage!({ data: '{}' })
  Socket.all[0]!.onclose!({ code: 1000 })
  vi.runAllTimers()

  expect(Socket.all[0]!.closed).toBe(true)
  expect(listener.said).toEqual(['connecting'])
})

test('the network coming back is not waited for', () => {
  const stop = watch('ses_1', listening())
  Socket.all[0]!.onclose!({ code: 1006 })
  dispatchEvent(new Event('online'))

  expect(Socket.all).toHaveLength(2)
  stop()
})

test('each failure doubles the wait up to a limit, and chance spreads it', () => {
  expect([0, 1, 2, 20].map((failures) => waitMs(failures, 1))).toEqual([300, 600, 1200, 15_000])
  expect(waitMs(2, 0)).toBe(600)
})
