"""Tell which language a text is in: by its script, or by the little words that every sentence of a language has.

The same little words are the ones that carry no meaning in a search. A language that is not listed here is found by
its script alone, and one in Latin letters is then not told apart from English.
"""

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import cast

ENGLISH = "english"

LOOKED_AT_CHARS = 600
"""How much of a text is looked at: its beginning shows its language."""

LEAST_WORDS = 2
"""So many little words of another language must be there, and more than of English."""

DENSE = (
    "\u0e00-\u0eff\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af"
)
"""The characters of scripts whose words are short runs without spaces (Thai, Lao, Japanese, Korean, Chinese), as a
range of a regular expression."""

_TOKEN = re.compile(r"[^\W\d_]+")
_STOPS = re.compile(r"[.!?:;\n\"'“”„«»()]\s{0,2}$")

_DENSE_LETTER = re.compile(f"[{DENSE}]")
_KANA = re.compile(r"[\u3040-\u30ff\u31f0-\u31ff]")

_SCRIPTS = {
    "korean": re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]"),
    "chinese": re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]"),
    "thai": re.compile(r"[\u0e00-\u0e7f]"),
    "russian": re.compile(r"[\u0400-\u052f]"),
    "greek": re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]"),
    "arabic": re.compile(r"[\u0600-\u06ff\u0750-\u077f]"),
    "hebrew": re.compile(r"[\u0590-\u05ff]"),
    "hindi": re.compile(r"[\u0900-\u097f]"),
    "tamil": re.compile(r"[\u0b80-\u0bff]"),
    "armenian": re.compile(r"[\u0530-\u058f]"),
}
SCRIPT_SHARE = 1 / 3
"""How much of a text's letters a script must have: other texts quote a word of it."""

KANA_SHARE = 0.1
"""How much of them must be kana for a text in Chinese characters to be Japanese."""


def language_of(text: str) -> str | None:
    """Return the language of a text, such as `german`; None where too little shows it."""
    return _language_of(text[:LOOKED_AT_CHARS])


@lru_cache(maxsize=4_096)
def _language_of(text: str) -> str | None:
    if not text.isascii():
        letters = sum(map(str.isalpha, text))
        dense = len(_DENSE_LETTER.findall(text)) > SCRIPT_SHARE * letters
        if dense and len(_KANA.findall(text)) > KANA_SHARE * letters:
            return "japanese"
        for language, characters in _SCRIPTS.items():
            if len(characters.findall(text)) > SCRIPT_SHARE * letters:
                return language
    counts = Counter(language for word in _running_words(text) for language in _LANGUAGES_OF.get(word, ()))
    if not counts:
        return None
    language, count = max(counts.items(), key=lambda pair: (pair[1], pair[0] == ENGLISH, pair[0]))
    return language if language == ENGLISH or count >= LEAST_WORDS else None


def _running_words(text: str) -> set[str]:
    """Return the words of a text that can show its language, each once."""
    # A capital in mid-sentence begins a name: "Los Angeles" is not Spanish. A lone letter belongs to no language.
    return {
        word.lower()
        for token in _TOKEN.finditer(text)
        if (len(word := token[0]) > 1 or not word.isascii())
        and (
            not word[0].isupper()
            or token.start() == 0
            or _STOPS.search(text[max(token.start() - 3, 0) : token.start()])
        )
    }


def composed(text: str) -> str:
    """Return a text with each character written in one way: a full-width letter as a letter, an accent with its own."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _listed(text: str) -> frozenset[str]:
    return frozenset(cast("list[str]", re.findall(r"\S+", text)))


LITTLE_WORDS: dict[str, frozenset[str]] = {
    ENGLISH: _listed(
        """a about also am an and any are as at be been being but by can could did do does doing for from had
        has have having he her hers him his how i i'd i'll i'm i've if in into is it it's its just let me
        mine my no not of on or our ours please she should so some than that the their them then there these
        they this those to too us was we were what when where which who whom whose why will with would you
        your yours"""
    ),
    "german": _listed(
        """aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist bitte da damit dann das
        dass dein deine deinem deinen deiner dem den der des die dies diese diesem diesen dieser dieses dir doch dort
        du durch ein eine einem einen einer eines er es etwas euch euer für gegen gibt hab habe haben hast hat hatte
        hätte ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ist ja jede jedem jeden jeder jedes kann kannst kein
        keine keinen können könnte könntest machen man mehr mein meine meinem meinen meiner mich mir mit muss müssen
        nach nicht noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner sich sie sind so soll sollte
        über um und uns unser unsere unter vom von vor wann war waren warum was welche welchem welchen welcher welches
        wenn wer werde werden wie will wir wird wo wurde würde würdest zu zum zur zwischen"""
    ),
    "dutch": _listed(
        """aan al alle alles als altijd andere ben bij daar dan dat de der deze die dit doen door dus een eens en er
        geen geef graag haar had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je jij jou jouw
        jullie kan kun kunnen kunt laat maar me meer men met mij mijn moet moeten mogen mag na naar niet niets nog nu
        of om omdat ons onze ook op over reeds te tegen toch toen tot u uit uw van veel voor waar waarom wanneer want
        waren was wat we welk welke wel werd wie wij wil worden wordt ze zei zelf zich zij zijn zo zonder zou zullen"""
    ),
    "italian": _listed(
        """a abbia ad agli ai al alcune alcuni all alla alle allo anche avere aveva c che chi ci ciao co coi col come
        con cosa cui d da dagli dai dal dall dalla dalle dallo dammi degli dei del dell della delle dello dei di dove e
        è ed era essere fra gli ha hai hanno ho i il in io l la le lei li lo loro lui ma me mi mia mie miei mio ne
        negli nei nel nell nella nelle nello noi non nostra nostro o ogni per perché più poco può puoi posso potresti
        qual quale quali quando quanto quella quelle quelli quello questa queste questi questo qualche se sei si sia
        sono sta stato su sua sue sugli sui sul sull sulla sulle sullo suo suoi te ti tra tu tua tue tuo tuoi tutta
        tutte tutti tutto un una uno vi voglio voi vorrei"""
    ),
    "french": _listed(
        """à ai alors as au aussi autre aux avec avez avoir avons c ce cela ces cet cette ceux chez comme comment d dans
        de des du elle elles en es est et être eu fait faire fais il ils j je l la le les leur leurs lui m ma mais me
        même mes moi mon n ne nos notre nous on ont ou où par pas peut peux plus pour pourquoi pouvez pourrais qu
        quand que quel quelle quelles quels qui quoi s sa sans se ses si son sont sur t ta te tes toi ton tous tout
        toute toutes tu un une veux vos votre voudrais vous y"""
    ),
    "spanish": _listed(
        """a al algo algún alguna algunas algunos ante antes aquí así aunque cada como cómo con contra cual cuál cuando
        cuándo cuánto de del desde donde dónde dos e el él ella ellas ellos en entre era eres es esa ese eso esta está
        estaba están estar este esto estos estoy fue ha hace hacer han has hasta hay he la las le les lo los más me mi
        mí mis mucho muy nada ni no nos nosotros nuestra nuestro o os otra otro para pero por porque porqué puede
        puedes puedo podrías que qué quien quién quiero se sea ser si sí sin sobre son soy su sus también te tengo ti
        tiene tienes todo todos tu tú tus un una uno unos usted y ya yo"""
    ),
    "portuguese": _listed(
        """a à ao aos as às até com como da das de dela dele do dos e é ela elas ele eles em entre era essa esse esta
        está estão este eu foi foram há isso isto já lhe mais mas me meu meus minha minhas muito na não nas nem no nos
        nós nossa nosso num numa o os ou para pela pelo pelos por porque posso pode podes poderia qual quais quando
        que quem quero são se sem ser seu seus só sua suas também te tem têm tenho teu toda todas todo todos tu tua
        um uma umas uns você vocês"""
    ),
    "swedish": _listed(
        """alla allt än är att av bli blir bra då de dem den denna deras dess det detta dig din dina ditt du efter
        eller en er ert ett från för ha har hade hur i inga ingen inte jag ju kan kunna man med mellan men mig min mina
        mitt mot mycket någon något några när ni nu och om oss på sedan sig sin sina ska skulle som så till under upp
        ut utan vad var vara varför vart vem vi vid vilken vilket vill åt över"""
    ),
    "danish": _listed(
        """af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din dine du efter eller en
        end er et for fra ham han hans har havde hende her hos hun hvad hvem hver hvilken hvis hvor hvordan hvorfor
        hvornår i ikke ind jeg jer kan kom kunne man mange med meget men mig min mine mit mod må ned noget nogle nu når
        og også om op os over på sig sin sine skal skulle som så thi til ud under var vi vil ville være"""
    ),
    "norwegian": _listed(
        """alle alt at av bare ble bli blir da de deg dem den denne der deres det dette din ditt du eller en er et etter
        for fra få ha hadde han har hennes her hun hva hvem hver hvilken hvis hvor hvordan hvorfor i ikke inn jeg kan
        kom kunne man mange med meg meget men min mitt mot mye må ned noe noen nå når og også om opp oss over på seg
        sin skal skulle som så til ut under uten var vi vil ville være"""
    ),
    "finnish": _listed(
        """ei eikä en että he hän hänen ja jo jos joka jossa jotka kanssa kuin kuinka kun kuka kyllä me mikä millainen
        miksi milloin minulla minulle minun minut minä missä mitä mitkä mukaan mutta myös ne niin niitä nyt nämä ole
        olen oli olla on onko ovat saa se sen siinä sinun sinä sitä tai te tämä tämän tätä voi voit voiko voisitko"""
    ),
    "polish": _listed(
        """aby ale albo bardzo być była było były był ci co czy dla do gdy gdzie go i ich ile im ja jak jaka jaki jakie
        jako jego jej jest jestem jeśli już która które który ma mam mi mnie mogę możesz może moja moje mój mu na nad
        nam nas nie nich niego niż o od on ona one oni oraz po pod proszę przed przez przy są się skąd ta tak także
        tam te tego tej ten też to tu twój ty tych tylko tym u w we więc wszystko z za ze że żeby"""
    ),
    "turkish": _listed(
        """acaba ama ancak bana bazı ben beni benim bir biri birkaç biz bu buna bunu çok çünkü da daha de değil diye en
        gibi göre hangi hem hep her hiç için ile ise kadar ki kim mı mi mu mü nasıl ne neden nerede nereye niçin o
        olan olarak olduğu olur ona onu sana sen senin siz şey şu tüm var ve veya ya yani yok"""
    ),
    "russian": _listed(
        """а без более бы был была были было быть в вам вас весь во вот все всё вы где да для до его ее её если есть еще
        ещё же за здесь и из или им их к как какая какие какой когда кто ли либо меня мне может можно мой моя мы на над
        нам нас не него нее неё нет ни них но ну о об однако он она они оно от очень по под пожалуйста при с со так
        также там те тем то того тоже той только том ты у уже хочу хотя чего чем что чтобы чье эта эти это этот я"""
    ),
}
"""The words that carry no meaning, by language. The English ones are those that were always left out."""

_ALSO_ENGLISH = _listed(
    """all another find first get give go good great here help like list make more most need new now one only open other
    out over same see set show still tell thanks thing under up use used using very want way well"""
)
"""Common words that show English as well and carry too much meaning to be left out."""

_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _language, _shown_by in {**LITTLE_WORDS, ENGLISH: LITTLE_WORDS[ENGLISH] | _ALSO_ENGLISH}.items():
    for _word in _shown_by:
        _LANGUAGES_OF[_word] = (*_LANGUAGES_OF.get(_word, ()), _language)
