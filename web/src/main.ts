import { mount } from 'svelte'
import Root from './Root.svelte'
import './tokens.css'
import './base.css'

mount(Root, { target: document.getElementById('app')! })
