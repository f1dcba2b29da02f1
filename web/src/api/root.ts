/** The prefix below which the server is reached, such as `/pane`; empty at the top of its host. The server says it. */

export const ROOT = told('root')
/** The address of the guide; empty where it was not built. */
export const GUIDE = told('guide')

function told(name: string): string {
  if (typeof document === 'undefined') return ''
  return document.querySelector<HTMLMetaElement>(`meta[name="windowpane-${name}"]`)?.content ?? ''
}

/** Tell whether a path of this host is one of this server. */
export function isBelowRoot(path: string, root: string = ROOT): boolean {
  return path === root || path.startsWith(`${root}/`)
}

/** Return a path of this server without the prefix. */
export function withoutRoot(path: string, root: string = ROOT): string {
  return isBelowRoot(path, root) ? path.slice(root.length) || '/' : path
}
