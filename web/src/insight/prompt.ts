/** A request as one document: its messages and tools in blocks, each with its owner, and where it begins to be new. */

import type { OfferedTool, RequestContext, RequestMessage } from '../api/schema.ts'
import { groupOf, type PartGroup } from '../context/parts.ts'

export type Block = {
  group: PartGroup
  role: string
  heading: string
  text: string
  /** By our own count; null where only the whole is counted. */
  tokens: number | null
}

/** Return the blocks in the order of the prompt. Items stand under headings with their names. */
export function blocksOf(
  messages: readonly RequestMessage[],
  tools: readonly OfferedTool[],
  context: Pick<RequestContext, 'items' | 'parts'>,
): Block[] {
  const parts = [...context.parts]
  /** Parts of one name stand in their order: an answer with tool calls is several messages. */
  const counted = (kind: string, name: string) => {
    const at = parts.findIndex((part) => part.kind === kind && part.name === name)
    return at < 0 ? null : parts.splice(at, 1)[0]!.tokens
  }
  const said = messages.flatMap((message) => {
    const { part, role, content, tool_calls: calls } = message
    if (part === 'rules' || part === 'references' || part === 'selected') return itemBlocks(message, context.items)
    const called = calls.map((call) => `${call.offered_name} ${call.arguments}`)
    const text = [content, ...called].filter(Boolean).join('\n')
    const tokens = counted(part, message.name)
    return [{ group: groupOf(part), role, heading: words(part, message.name), text, tokens }]
  })
  const offered = tools.map((tool): Block => {
    const tokens = context.items.find((item) => item.offered_name === tool.offered_name)?.tokens ?? null
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

function itemBlocks({ role, content, part }: RequestMessage, items: RequestContext['items']): Block[] {
  const blocks: Block[] = []
  let group: PartGroup = part === 'references' ? 'references' : 'rules'
  let type = group === 'references' ? 'reference' : 'rule'
  let block: Block = { group, role, heading: words(part, ''), text: '', tokens: null }
  const lines = content.split('\n')
  lines.forEach((line, at) => {
    if (part === 'selected' && (line === '# Rules' || line === '# References')) {
      group = line === '# Rules' ? 'rules' : 'references'
      type = line === '# Rules' ? 'rule' : 'reference'
      if (block.heading !== words(part, '')) blocks.push(block)
      block = { group, role, heading: words(part, group), text: blocks.length ? '' : block.text, tokens: null }
    }
    const item = line.startsWith('## ') ? items.find((one) => one.type === type && one.name === line.slice(3)) : null
    if (item) {
      blocks.push(block)
      block = { group, role, heading: item.name, text: '', tokens: item.tokens }
    }
    block = { ...block, text: block.text + line + (at < lines.length - 1 ? '\n' : '') }
  })
  return [...blocks, block]
}

function words(kind: string, name: string): string {
  const plain = (text: string) => text.replaceAll('_', ' ')
  return name && name !== kind ? `${plain(kind)} · ${plain(name)}` : plain(kind)
}
