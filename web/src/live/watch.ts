/**
 * Watch a session over a WebSocket: everything after a sequence number, and across lost connections without a gap.
 *
 * A lost connection is tried again sooner at first and later after each failure, and at once when the browser says
 * that the network is back or the page is looked at again.
 */

import { ROOT } from '../api/root.ts'
import type { WatchedEvent } from '../api/schema.ts'

export type Connection = 'connecting' | 'live' | 'offline' | 'gone' | 'locked'

export interface Listener {
  /** How far the listener has come; asked at every connection. */
  after(): number
  onConnection(connection: Connection): void
  /** A stream begins: text on its way comes again from its beginning. */
  onBegin(): void
  onEvent(event: WatchedEvent): void
}

const FIRST_WAIT_MS = 300
const LONGEST_WAIT_MS = 15_000
const NO_SESSION = 4404
const NO_TOKEN = 4401

/** How long to wait before trying again after so many failures in a row; `chance` is between 0 and 1. */
export function waitMs(failures: number, chance: number): number {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures)
  return longest / 2 + (longest / 2) * chance
}

/** Close a socket; one that is still being opened is closed then, since browsers complain about it before. */
function hangUp(socket: WebSocket): void {
  if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close()
  else socket.close()
}

/** Watch until the returned function is called. */
export function watch(session: string, listener: Listener): () => void {
  let socket: WebSocket | null = null
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let ended = false

  function connect(): void {
    clearTimeout(timer)
    timer = undefined
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:'
    const path = `${ROOT}/api/sessions/${encodeURIComponent(session)}/events`
    const mine = (socket = new WebSocket(`${scheme}//${location.host}${path}?after=${listener.after()}`))
    mine.onopen = () => {
      if (mine !== socket) return
      failures = 0
      listener.onBegin()
      listener.onConnection('live')
    }
    mine.onmessage = ({ data }: MessageEvent<string>) => {
      if (mine === socket) listener.onEvent(JSON.parse(data) as WatchedEvent)
    }
    mine.onclose = ({ code }) => {
      if (mine !== socket || ended) return
      socket = null
      if (code === NO_SESSION || code === NO_TOKEN) {
        stop()
        listener.onConnection(code === NO_SESSION ? 'gone' : 'locked')
        return
      }
      listener.onConnection('offline')
      timer = setTimeout(connect, waitMs(failures++, Math.random()))
    }
  }

  function now(): void {
    if (!ended && !socket && document.visibilityState === 'visible') connect()
  }

  function stop(): void {
    ended = true
    clearTimeout(timer)
    removeEventListener('online', now)
    document.removeEventListener('visibilitychange', now)
    if (socket) hangUp(socket)
    socket = null
  }

  addEventListener('online', now)
  document.addEventListener('visibilitychange', now)
  listener.onConnection('connecting')
  connect()
  return stop
}
