/** Where the page is now. Links are plain `<a href>`; a click on one of ours changes the place without a reload. */

import { isBelowRoot, withoutRoot } from '../api/root.ts'
import { href, parse, type Address, type Applet, type Place } from './route.ts'
import { kept } from '../ui/kept.ts'

const LAST_SESSION = 'last-session'
/** Addresses of the server that are not places of this page. */
const SERVER_PATHS = /^\/(api|v1|mcp|openapi\.json|healthz|push|assets|metrics)(\/|$)/

class Navigation {
  #address: Address = $state.raw(parse(location.href))

  get place(): Place {
    return this.#address.place
  }

  get applet(): Applet | null {
    return this.#address.applet
  }

  /** The session that is open, in whatever view of it. */
  get session(): string | null {
    return this.place.view === 'session' ? this.place.session : null
  }

  /** The session that was open last, in this page or in another. */
  get lastSession(): string | null {
    return kept<string>(LAST_SESSION).value
  }

  go(place: Place, options: { applet?: Applet | null; replace?: boolean } = {}): void {
    this.#change(href(place, options.applet ?? null), options.replace ?? false)
  }

  /** Open an applet beside the place that is open, or close it. */
  show(applet: Applet | null): void {
    this.#change(href(this.place, applet), false)
  }

  start(): () => void {
    const arrived = () => this.#arrive(location.href, true)
    const clicked = (event: MouseEvent) => this.#follow(event)
    arrived()
    addEventListener('popstate', arrived)
    document.addEventListener('click', clicked)
    return () => {
      removeEventListener('popstate', arrived)
      document.removeEventListener('click', clicked)
    }
  }

  #change(target: string, replace: boolean): void {
    if (replace) history.replaceState(null, '', target)
    else if (target !== location.pathname + location.search) history.pushState(null, '', target)
    this.#arrive(target, false)
  }

  #arrive(url: string, opened: boolean): void {
    const address = parse(url)
    const last = kept<string>(LAST_SESSION)
    // `/?applet=…` names no session: an applet belongs to the one that was open last.
    if (opened && address.place.view === 'new' && address.applet && last.value) {
      this.#change(href({ view: 'session', session: last.value }, address.applet), true)
      return
    }
    this.#address = address
    if (address.place.view === 'session') last.value = address.place.session
  }

  #follow(event: MouseEvent): void {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return
    const link = (event.target as Element | null)?.closest?.('a[href]')
    if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute('download')) return
    if (link.origin !== location.origin || !isBelowRoot(link.pathname) || SERVER_PATHS.test(withoutRoot(link.pathname)))
      return
    event.preventDefault()
    const { place, applet } = parse(link.href)
    if (place.view === 'new' && applet) this.show(applet)
    else this.#change(link.pathname + link.search, false)
  }
}

export const navigation = new Navigation()
