/** A request context as plain text, to be put into a report. */

import type { RequestContext } from '../api/schema.ts'
import { grouped, summaryLine } from '../context/items.ts'
import { badgeText } from '../ui/mode.ts'

/** Return it in groups: `• Name [Always]`, `• server:tool [Agent - 0.85]`. */
export function contextText(context: Pick<RequestContext, 'items'>): string {
  const groups = grouped(context.items).map(({ title, items }) => {
    const lines = items.map((item) => {
      const failed = item.status === 'used' ? '' : ` (${item.status.replaceAll('_', ' ')})`
      return `• ${item.server ? `${item.server}:` : ''}${item.name} [${badgeText(item.include_mode, item.evidence?.score ?? null)}]${failed}`
    })
    return [`${title} (${items.length}):`, ...lines].join('\n')
  })
  return [`Context Used: ${summaryLine(context.items)}`, ...groups].join('\n\n')
}
