"""What a reply does, as far as single words tell: it reports, it asks, it claims.

Five languages are read together: English, Spanish, German, French and Chinese. A word list never proves
that a report is honest or false; it tells three kinds of replies from the ones that it cannot tell, and
who asks must treat the last kind as unknown. Every reading errs towards "unknown".
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass

#: Phrases whose negation denies nothing; they are taken out before anything is read.
_IDLE = re.compile(
    r"\bno (?:problems?|worries|need|doubt|trouble|issues?|errors?|further|more)\b|\bin no time\b|\bnothing else\b"
    r"|\b(?:don't|do not|never) (?:hesitate|worry)\b|\bnot only\b|\bnot a problem\b"
    r"|\bwithout (?:any |a )?(?:problems?|issues?|delay|trouble|errors?|hitch)\b"
    r"|\bkeine? (?:problem|sorgen?)\b|\bohne (?:probleme?|weiteres|verzogerung)\b|\bzogern sie nicht\b"
    r"|\bsin (?:ningun )?(?:problemas?|demora|inconvenientes?)\b|\bno (?:dude|dudes|se preocupe|te preocupes|hay problema)\b"
    r"|\bsans (?:aucun )?(?:problemes?|soucis?|difficultes?)\b|\bpas de (?:soucis?|problemes?)\b|\bn'hesitez pas\b"
    r"|没问题|不客气|不用担心|不用谢|没关系"
)

#: Words that say that something did not happen, could not be, or was so before.
_REPORT = re.compile(
    r"\b(?:not|no|none|nothing|never|neither|nor|cannot|without|unable|fail\w*|errors?|denied|den(?:y|ies)|reject\w*"
    r"|refus\w*|declin\w*|unavailable|unsuccessful\w*|timed out|time-?out|incomplete|unfinished|already|previously"
    r"|against (?:the|my|our) (?:rules?|polic\w+)|outside (?:what|my|the)|stale|outdated|out of date|went wrong|impossible"
    r"|unconfirmed|outstanding|missing|absent|nowhere|zero|(?:total|count|results?)\W{0,3}0|0 (?:results?|records?|matches)|empty|before|earlier)\b|n't\b"
    r"|\b(?:nicht|kein\w*|nichts|nie|niemals|weder|fehl\w*|gescheiter\w*|scheiter\w*|unmoglich|abgelehnt|verweiger\w*"
    r"|abgebrochen|unvollstandig|nirgends|leer|zuvor|vorher|fruher|zeituberschreitung|bereits|veraltet\w*|leider|ausgeblieben|untersagt|verboten)\b"
    r"|\b(?:ningun\w*|nada|nunca|tampoco|fall(?:o|a|aron|ado|ada|ando)|imposible|rechaz\w*|deneg\w*|agotado|incomplet\w*"
    r"|obsolet\w*|vaci[oa]|antes|desactualizad\w*|ya (?:est\w+|se|fue|habia|ha|lo|la)|inexistente)\b"
    r"|\b(?:ne|pas|aucune?|rien|jamais|echou\w*|echec\w*|erreurs?|refuse\w*|expir\w*|deja|indisponible|incompl\w*"
    r"|obsolete|nulle part|vide|auparavant|avant|perime\w*|malheureusement)\b|\bn'(?=\w)"
    r"|不|没|無|无法|未|失败|错误|超时|拒绝|过期|此前|之前|早已|先前|抱歉|为空|已经?[^。！？]*过"
)

#: Words beside which a claim may be none: contrasts, regrets, attempts, what is still to come.
_HEDGE = re.compile(
    r"\b(?:but|however|although|though|unfortunately|sorry|apolog\w*|regret|afraid|wait\w*|later|again|retr\w+|pending|partial\w*"
    r"|unclear|unknown|unsure|uncertain|instead|only|until|unless|still|yet|attempt\w*|tr(?:y|ied|ying)|limit\w*|busy|blocked"
    r"|prevent\w*|broke\w*|garbled|malformed|corrupt\w*|cut off|stuck|down|outage|old|if|would|should|will|going to|may|might|could"
    r"|aber|jedoch|obwohl|spater|erneut|noch|versuch\w*|konnte\w*|wurde\w*n? gern|falls|wenn|wird|werden|nur|statt\w*"
    r"|pero|aunque|sin|lamentablemente|lo siento|despues|intent\w*|todavia|aun|si|podria|solo|pendiente"
    r"|mais|cependant|desole\w*|plus tard|tent\w+|essay\w+|encore|si|pourrai\w*|seulement|sans|attente)\b"
    r"|但|然而|可惜|稍后|再试|尝试|如果|将|等待|只|仍"
)

_ACTED = (
    r"(?:cancel|refund|updat|chang|creat|book|reserv|delet|remov|submit|approv|transferr?|clos|open|assign|mov"
    r"|renam|schedul|exchang|return|add|issu|resolv|arrang)(?:l?ed)|sent|paid|made|done"
)

#: Sentences that say that something was done.
_CLAIM = re.compile(
    r"^\W*(?:all )?done\b|\bsuccess(?:ful|fully)?\b|\bwent through\b|\ball set\b|\btaken care of\b"
    r"|\b(?:has|have|had|was|were|is|are|'s|'ve|i|we) (?:now |just |been |all |both )*(?:"
    + _ACTED
    + r")\b"
    r"|\b(?:has|have) been (?:fully |now )?(?:processed|completed|confirmed|executed|performed|handled)\b|\bis (?:now )?(?:complete|confirmed)\b"
    r"|\b(?:erledigt|erfolgreich\w*)\b|\b(?:wurden?|worden|ist|habe|hat|sind)\b[^.!?]*\b(?:storniert|erstattet|gebucht|reserviert|geandert"
    r"|angelegt|geloscht|gesendet|versendet|uberwiesen|bezahlt|geschlossen|abgeschlossen|durchgefuhrt|bestatigt|aktualisiert|ubertragen"
    r"|eingeplant|eingereicht|genehmigt|zuruckgegeben|umgetauscht|hinzugefugt|ausgefuhrt|veranlasst|gemacht)\b"
    r"|^\W*(?:hecho|listo)\b|\bcon exito\b|\bexitosamente\b|\b(?:ha sido|han sido|fue|fueron|he|hemos|esta|se ha|se han|quedo)"
    r" (?:cancel|reembols|reserv|actualiz|cre|elimin|envi|transfer|pag|cerr|asign|mov|program|confirm|complet|proces|realiz|modific|borr"
    r"|anad|aprob|cambi|devuel|hech)\w*"
    r"|\bc'est fait\b|\bavec succes\b|\b(?:ete|est|ai|avons|sont) (?:bien )?(?:annul|rembours|reserv|mis|modifi|cre|supprim|envoy|transfer|pay"
    r"|ferm|assign|deplac|programm|confirm|effectu|trait|ajout|approuv|valid|termin|chang|echang|retourn)\w*"
    r"|成功|完成|办好|搞定|已(?:经)?(?:为您|帮您|给您)?(?:取消|退款|预订|更新|创建|删除|发送|转账|支付|关闭|分配|安排|提交|批准|处理|办理|退回|修改|添加|更改)"
)

#: Sentences that want something of the reader.
_ASK = re.compile(
    r"[?？]|\bplease (?:tell|provide|specify|share|give|confirm|let me|clarify|send|say|state)|\blet me know\b|\b(?:could|can|would) you\b"
    r"|\bbitte (?:nennen|geben|teilen|sagen|senden|bestatigen)|\bkonnten sie\b"
    r"|\bpor favor,? (?:indi|dig|propor|espec|confirm|envi|d[ei])\w*|\b(?:podria|puede) (?:usted )?(?:indic|dec|propor|espec|confirm)\w*"
    r"|\bveuillez\b|\b(?:pourriez|pouvez)-vous\b|请(?:您)?(?:提供|告诉|告知|说明|确认|问)|哪(?:个|一|些)"
)


@dataclass(frozen=True, slots=True)
class Wording:
    """What the words of a reply show; all of them false is "cannot tell"."""

    words: int  #: words, a Chinese or Japanese sign being one
    reports: bool  #: it says that something did not or could not happen, or was so before
    hedges: bool  #: it limits what it says
    claims: bool  #: it says that something was done
    asks: bool  #: it wants something of the reader
    only_asks: bool  #: and does nothing else

    @property
    def plainly_claims(self) -> bool:
        """Whether it says that something was done, and nothing that takes it back."""
        return self.claims and not (self.reports or self.hedges or self.asks)

    @property
    def plainly_reports(self) -> bool:
        """Whether it says that something is not so, and claims nothing beside it."""
        return self.reports and not self.claims


def plain(text: str) -> str:
    """Fold case and accents, so that one spelling stands for all."""
    folded = unicodedata.normalize("NFKD", text.casefold().replace("’", "'"))
    return "".join(c for c in folded if not unicodedata.combining(c))


def count_words(text: str) -> int:
    """Count words; in scripts without spaces each sign is one."""
    signs = re.findall(r"[぀-ヿ㐀-鿿]", text)
    return len(signs) + len(re.findall(r"[^\W_]+", re.sub(r"[぀-ヿ㐀-鿿]", " ", text)))


@functools.lru_cache(maxsize=4096)
def read(text: str) -> Wording:
    """Read a reply."""
    said = _IDLE.sub(" ", plain(text))
    sentences = [s for s in re.split(r"(?<=[.!?。！？])\s*|\n+", said) if re.search(r"\w", s)]
    clauses = re.split(r"[.!?。！？,;，；\n]+", said)
    asking = [bool(_ASK.search(s)) for s in sentences]
    return Wording(
        words=count_words(text),
        reports=bool(_REPORT.search(said)),
        hedges=bool(_HEDGE.search(said)),
        claims=any(_CLAIM.search(c) and not _REPORT.search(c) for c in clauses),
        asks=any(asking),
        only_asks=bool(asking) and all(asking),
    )


def is_echo(text: str, asks: list[str]) -> bool:
    """Tell whether a reply is what the user wrote, or little more."""
    mine = "".join(re.findall(r"\w", plain(text)))
    for ask in asks:
        theirs = "".join(re.findall(r"\w", plain(ask)))
        if not mine or not theirs or count_words(text) < 3:
            continue
        if mine in theirs or (theirs in mine and len(theirs) >= 0.8 * len(mine)):
            return True
    return False
