/** The places beside the conversation, each loaded when it is first opened. Add a view here and its place in `route.ts`. */

import type { Component } from 'svelte'
import type { Place } from './routing/route.ts'

// Each view has properties of its own, which `viewOf` gives it.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type View = { load: () => Promise<{ default: Component<any> }>; props: object }

// The same function for the same view: what is open stays open when only its properties change.
const loadAgents = () => import('./agents/AgentsView.svelte')
const loadAgent = () => import('./agents/AgentView.svelte')
const loadAnalytics = () => import('./insight/analytics/AnalyticsView.svelte')

const loadShared = () => import('./insight/xray/SharedView.svelte')

export function viewOf(place: Place): View | null {
  switch (place.view) {
    case 'agents':
      return { load: loadAgents, props: {} }
    case 'agent':
      return { load: loadAgent, props: { agent: place.agent, item: place.item ?? null, part: place.part ?? null } }
    case 'analytics':
      return { load: loadAnalytics, props: { filters: place.filters ?? {} } }
    case 'shared':
      return { load: loadShared, props: {} }
    default:
      return null
  }
}
