/** The context footer: which links the working context gives, in which order, and how many are not shown. */

import type { Applet } from '../routing/route.ts'
import { href } from '../routing/route.ts'
import type { ContextSets } from './session.ts'

const SHOWN_FILES = 5
/** What the applets of this page are called where they are opened. */
export const APPLET_NAMES: Record<string, string> = { 'text-editor': 'Files', 'git-diff': 'Changes' }

export type FooterLink = { text: string; title: string; href: string }
/** `more` are the files that are not shown. */
export type Footer = { files: FooterLink[]; more: string[]; applet: FooterLink | null }

export function footerOf(context: ContextSets): Footer {
  const files = context['files'] ?? []
  const applet = appletIn(context)
  return {
    files: files.slice(0, SHOWN_FILES).map(fileLink),
    more: files.slice(SHOWN_FILES),
    applet: applet && appletLink(applet),
  }
}

export function appletIn(context: ContextSets): Applet | null {
  const [slug, ...rest] = context['applet'] ?? []
  if (!slug) return null
  return { slug, params: rest.map(parameter) }
}

function fileLink(path: string): FooterLink {
  const text = path.split(/[/\\]/).filter(Boolean).at(-1) ?? path
  const applet: Applet = { slug: 'text-editor', params: [['path', path]] }
  return { text, title: path, href: href({ view: 'new' }, applet) }
}

function appletLink(applet: Applet): FooterLink {
  const title = applet.params.map(([name, value]) => `${name}=${value}`).join(', ')
  return { text: `[${applet.slug}]`, title: title || applet.slug, href: href({ view: 'new' }, applet) }
}

function parameter(item: string): [string, string] {
  const at = item.indexOf('=')
  return at < 0 ? [item, ''] : [item.slice(0, at), item.slice(at + 1)]
}
