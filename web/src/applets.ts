/** The applets that can stand beside a conversation, by the slug that addresses and working context name them with. */

import type { Component } from 'svelte'
import type { LiveSession } from './live/session.svelte.ts'

export type AppletComponent = Component<{ session: LiveSession; params: Record<string, string> }>

export const applets: Record<string, () => Promise<{ default: AppletComponent }>> = {
  'text-editor': () => import('./applets/TextEditor.svelte'),
  'git-diff': () => import('./applets/GitDiff.svelte'),
}
