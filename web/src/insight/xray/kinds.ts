/** The parts of a recorded call as people read them: their kinds, in groups with a colour each, and what is of no use. */

import type { SentPart, SentShare, XrayReport } from '../../api/schema.ts'
import { inDigits, tokensText, type PartGroup, type WindowUse } from '../../context/parts.ts'
import { counted } from '../../ui/words.ts'

export type Kind = SentPart['kind']

export const KINDS: Record<Kind, { title: string; group: PartGroup }> = {
  tool: { title: 'Tool', group: 'tools' },
  system: { title: 'System prompt', group: 'system' },
  environment: { title: 'Environment', group: 'fetched' },
  instructions: { title: 'Instruction file', group: 'rules' },
  skills: { title: 'Skills', group: 'references' },
  mcp: { title: 'MCP instructions', group: 'references' },
  reminder: { title: 'Reminder', group: 'recall' },
  billing: { title: 'Billing', group: 'recall' },
  message: { title: 'User message', group: 'message' },
  reply: { title: 'Reply', group: 'history' },
  thinking: { title: 'Thinking', group: 'history' },
  call: { title: 'Tool call', group: 'history' },
  result: { title: 'Tool result', group: 'summary' },
  attachment: { title: 'Attachment', group: 'message' },
  setting: { title: 'Setting', group: 'system' },
}

const TITLES: [PartGroup, string][] = [
  ['tools', 'Tools'],
  ['system', 'System prompt'],
  ['fetched', 'Environment'],
  ['rules', 'Instruction files'],
  ['references', 'Skills and MCP'],
  ['recall', 'Reminders'],
  ['message', 'User'],
  ['history', 'Model'],
  ['summary', 'Tool results'],
]

/** Return what a call takes of its model's window; where that is not known, of what it takes itself. */
export function useOf(kinds: readonly SentShare[], window: number | null): WindowUse {
  const found = new Map<PartGroup, number>()
  for (const { kind, tokens } of kinds) found.set(KINDS[kind].group, (found.get(KINDS[kind].group) ?? 0) + tokens)
  const shares = TITLES.map(([group, title]) => ({ group, title, tokens: found.get(group) ?? 0 })).filter(
    ({ tokens }) => tokens > 0,
  )
  const used = shares.reduce((sum, { tokens }) => sum + tokens, 0)
  const whole = Math.max(window ?? used, used)
  return { shares, used, reply: 0, window: whole, room: whole - used }
}

/** Return a part's name, or the kind that it is of. */
export function partName({ kind, name }: { kind: Kind; name: string }): string {
  return name || KINDS[kind].title
}

/** Return a part's kind with its name, or the kind alone where the name says the same. */
export function partTitle({ kind, name }: { kind: Kind; name: string }): string {
  const { title } = KINDS[kind]
  return name.toLowerCase() === title.toLowerCase() ? title : `${title} ${name}`.trimEnd()
}

const REASONS: Record<string, string> = {
  full: 'too much was waiting',
  store: 'the store did not take them',
  unreadable: 'they could not be read',
}

/** Return that calls were passed on and not recorded; empty when none was. */
export function lossText(lost: Record<string, number>): string {
  const reasons = Object.entries(lost).filter(([, count]) => count > 0)
  if (!reasons.length) return ''
  const all = reasons.reduce((sum, [, count]) => sum + count, 0)
  const why = reasons.map(([reason, count]) => `${count}: ${REASONS[reason] ?? reason}`).join('; ')
  return `${counted(all, 'call')} passed on and not recorded since the server started (${why}).`
}

/** Return what could be left out, each in one sentence. */
export function wasteOf({ tools, repeated, stale }: Pick<XrayReport, 'tools' | 'repeated' | 'stale'>): {
  unused: string
  stale: string[]
  repeated: string[]
} {
  const never = tools.filter(({ calls }) => !calls)
  const sum = (of: (tool: (typeof never)[number]) => number) => never.reduce((all, tool) => all + of(tool), 0)
  const unused = never.length
    ? `${inDigits(never.length)} of ${counted(tools.length, 'tool')} never called: ${tokensText(sum((tool) => tool.tokens))} in each call, ${inDigits(sum((tool) => tool.session_tokens))} in the session.`
    : ''
  return {
    unused,
    stale: stale.map(
      ({ tool, subject, reads, tokens }) =>
        `${tool} ${subject}: read ${inDigits(reads)} times, ${tokensText(tokens)} of old results.`,
    ),
    repeated: repeated.map(
      (text) => `${partName(text)}: ${inDigits(text.copies)} copies, ${tokensText(text.tokens)} more than one takes.`,
    ),
  }
}
