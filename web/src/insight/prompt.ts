/** A request as one document: its messages and tools in blocks, each with its owner, and where it begins to be new. */

import type { ContextItem, OfferedTool, RequestContext, RequestMessage } from '../api/schema.ts'
import { groupOf, type PartGroup } from '../context/parts.ts'

export type Block = {
  group: PartGroup
  role: string
  heading: string
  text: string
  /** By our own count; null where only the whole is counted. */
  tokens: number | null
}

/** An item that was selected now, or that stands in the prompt since an earlier turn. */
type Named = Pick<ContextItem, 'type' | 'name' | 'tokens' | 'offered_name'>

/** Return the blocks in the order of the prompt. Items stand under headings with their names. */
export function blocksOf(
  messages: readonly RequestMessage[],
  tools: readonly OfferedTool[],
  context: Pick<RequestContext, 'items' | 'carried' | 'parts'>,
): Block[] {
  const parts = [...context.parts]
  const items: Named[] = [...context.items, ...context.carried]
  /** Parts of one name stand in their order: an answer with tool calls is several messages. */
  const counted = (kind: string, name: string) => {
    const at = parts.findIndex((part) => part.kind === kind && part.name === name)
    return at < 0 ? null : parts.splice(at, 1)[0]!.tokens
  }
  const said = messages.flatMap((message) => {
    const { part, role, content, tool_calls: calls } = message
    if (part === 'rules' || part === 'references' || part === 'selected') return itemBlocks(message, items)
    const called = calls.map((call) => `${call.offered_name} ${call.arguments}`)
    const text = [content, ...called].filter(Boolean).join('\n')
    const tokens = counted(part, message.name)
    return [{ group: groupOf(part), role, heading: words(part, message.name), text, tokens }]
  })
  const offered = tools.map((tool): Block => {
    const tokens = items.find((item) => item.offered_name === tool.offered_name)?.tokens ?? null
    const text = `${tool.description}\n${JSON.stringify(tool.parameters, null, 2)}`
    return { group: 'tools', role: 'tool', heading: tool.offered_name, text, tokens }
  })
  return [...said, ...offered]
}

/** Return how many of the first blocks are the same in another request: so far a provider's cache can serve it. */
export function sameBefore(blocks: readonly Block[], earlier: readonly Block[]): number {
  const differs = blocks.findIndex(({ text, role }, at) => earlier[at]?.text !== text || earlier[at]?.role !== role)
  return differs < 0 ? blocks.length : differs
}

/** Cut a text at every place where the words stand, whatever their case; every second stretch is a match. */
export function matchesIn(text: string, query: string): string[] {
  if (!query) return [text]
  const [low, wanted] = [text.toLowerCase(), query.toLowerCase()]
  const found: string[] = []
  let at = 0
  for (let next = low.indexOf(wanted); next >= 0; next = low.indexOf(wanted, at)) {
    found.push(text.slice(at, next), text.slice(next, next + wanted.length))
    at = next + wanted.length
  }
  return [...found, text.slice(at)]
}

function itemBlocks({ role, content, part, name }: RequestMessage, items: readonly Named[]): Block[] {
  const blocks: Block[] = []
  const whole = words(part, part === 'selected' ? name : '')
  let group: PartGroup = part === 'references' ? 'references' : 'rules'
  let type = group === 'references' ? 'reference' : 'rule'
  let block: Block = { group, role, heading: whole, text: '', tokens: null }
  const lines = content.split('\n')
  lines.forEach((line, at) => {
    if (part === 'selected' && (line === '# Rules' || line === '# References')) {
      group = line === '# Rules' ? 'rules' : 'references'
      type = line === '# Rules' ? 'rule' : 'reference'
      if (block.heading !== whole) blocks.push(block)
      block = { group, role, heading: `${whole} · ${group}`, text: blocks.length ? '' : block.text, tokens: null }
    }
    const item = line.startsWith('## ')
      ? items.find((one) => one.type === type && heads(line.slice(3), one.name))
      : null
    if (item) {
      blocks.push(block)
      block = { group, role, heading: item.name, text: '', tokens: item.tokens }
    }
    block = { ...block, text: block.text + line + (at < lines.length - 1 ? '\n' : '') }
  })
  return [...blocks, block]
}

/** Tell whether a heading is that of an item: its name, and its title where it has one. */
function heads(heading: string, name: string): boolean {
  return heading === name || heading.startsWith(`${name}: `)
}

function words(kind: string, name: string): string {
  const plain = (text: string) => text.replaceAll('_', ' ')
  const said = name && name !== kind ? `${plain(kind)} · ${plain(name)}` : plain(kind)
  return said.charAt(0).toUpperCase() + said.slice(1)
}
