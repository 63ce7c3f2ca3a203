/* A stand-in for cuBLASLt that multiplies on the host, column-major as the real one. Its kernels: ids 1 to 6; 3 and 6
   split the sum and need workspace, 4 needs 8 bytes of alignment, 5 needs 128, and 6 computes a wrong element. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <complex.h>
#include <math.h>
#include <stdio.h>
typedef double complex Z;
typedef struct {int compute,scale,ta,tb; unsigned epi; uint64_t bias;} Desc;
typedef struct {unsigned type; uint64_t rows,cols; int64_t ld; int batch; int64_t stride;} Lay;
typedef struct {uint64_t ws; unsigned mask; unsigned al[4];} Pref;
typedef struct {int id; unsigned tile,stages; int splitk; unsigned red,swz,custom; uint16_t inner,cluster; char rest[32];} Algo;
typedef struct {Algo algo; size_t ws; int state; float waves; int res[4];} Res;
static Z ld_(int t,const void*p,int64_t i){switch(t){case 0:return ((float*)p)[i];case 1:return ((double*)p)[i];case 2:return ((_Float16*)p)[i];
 case 4:return ((float complex*)p)[i];case 5:return ((Z*)p)[i];case 14:{uint32_t w=(uint32_t)((uint16_t*)p)[i]<<16;float f;memcpy(&f,&w,4);return f;}}return 0;}
static void st_(int t,void*p,int64_t i,Z v){switch(t){case 0:((float*)p)[i]=creal(v);break;case 1:((double*)p)[i]=creal(v);break;case 2:((_Float16*)p)[i]=creal(v);break;
 case 4:((float complex*)p)[i]=v;break;case 5:((Z*)p)[i]=v;break;case 14:{float f=creal(v);uint32_t w;memcpy(&w,&f,4);w+=0x7fff+((w>>16)&1);((uint16_t*)p)[i]=w>>16;}}}
static size_t sz(int t){return t==0?4:t==1?8:t==2?2:t==4?8:t==5?16:t==14?2:1;}
static Z scal(int st,const void*p){return st==2?ld_(2,p,0):ld_(st,p,0);}
static void gemm(int ta,int tb,int64_t m,int64_t n,int64_t k,Z al,const void*A,int at,int64_t lda,const void*B,int bt,int64_t ldb,Z be,const void*C,int ct,int64_t ldc,void*D,int dt,int64_t ldd,unsigned epi,const void*bias){
 for(int64_t j=0;j<n;j++)for(int64_t i=0;i<m;i++){Z s=0;for(int64_t l=0;l<k;l++)s+=(ta?ld_(at,A,l+i*lda):ld_(at,A,i+l*lda))*(tb?ld_(bt,B,j+l*ldb):ld_(bt,B,l+j*ldb));
  s*=al; if(be!=0)s+=be*ld_(ct,C,i+j*ldc); if(epi&4)s+=ld_(ct,bias,i); double r=creal(s); if(epi&2)s=r>0?r:0; if(epi&32)s=0.5*r*(1+tanh(0.7978845608028654*(r+0.044715*r*r*r))); st_(dt,D,i+j*ldd,s);} }
/* What was launched last for each result, and with which context current; a handle works in the one it was made in. */
static void* context(void){static int(*get)(void**);void*now=0;if(!get){void*l=dlopen("libcuda.so.1",RTLD_NOW|RTLD_NOLOAD);if(l)get=dlsym(l,"cuCtxGetCurrent");}if(get)get(&now);return now;}
static struct{uint64_t out,stream,ws,ctx,mode;} calls[1<<16]; static int count;
static void note(void*out,void*stream,void*ws,int mode){int i=__sync_fetch_and_add(&count,1)&0xffff;calls[i].out=(uint64_t)out;calls[i].stream=(uint64_t)stream;calls[i].ws=(uint64_t)ws;calls[i].ctx=(uint64_t)context();calls[i].mode=mode;}
uint64_t fake_call(uint64_t out,int what){for(int i=count-1;i>=0&&i>count-0xffff;i--)if(calls[i&0xffff].out==out)return (&calls[i&0xffff].out)[what];return 0;}
size_t cublasLtGetVersion(void){return 130100;}
const char*cublasLtGetStatusString(int s){return "fake status";}
const char*cublasLtGetStatusName(int s){return "FAKE_STATUS";}
int cublasLtCreate(void***h){*h=malloc(8);**h=context();return 0;}
int cublasLtDestroy(void*h){free(h);return 0;}
int cublasLtMatmulDescCreate(Desc**d,int c,int s){*d=calloc(1,sizeof(Desc));(*d)->compute=c;(*d)->scale=s;(*d)->epi=1;return 0;}
int cublasLtMatmulDescDestroy(Desc*d){memset(d,0xee,sizeof*d);free(d);return 0;}
static int dsz(int a){switch(a){case 8:case 17:case 18:case 20:return 8;case 25:return 1;default:return 4;}}
int cublasLtMatmulDescSetAttribute(Desc*d,int a,const void*b,size_t n){if(n!=dsz(a))return 7; switch(a){case 3:d->ta=*(int*)b;break;case 4:d->tb=*(int*)b;break;case 7:d->epi=*(unsigned*)b;break;case 8:d->bias=*(uint64_t*)b;break;}return 0;}
int cublasLtMatmulDescGetAttribute(Desc*d,int a,void*b,size_t n,size_t*w){*w=dsz(a);if(!n)return 0;if(n!=dsz(a))return 7;switch(a){case 0:*(int*)b=d->compute;break;case 1:*(int*)b=d->scale;break;case 3:*(int*)b=d->ta;break;case 4:*(int*)b=d->tb;break;case 7:*(unsigned*)b=d->epi;break;case 8:*(uint64_t*)b=d->bias;break;}return 0;}
int cublasLtMatrixLayoutCreate(Lay**l,int t,uint64_t r,uint64_t c,int64_t ld){*l=calloc(1,sizeof(Lay));**l=(Lay){t,r,c,ld,1,0};return 0;}
int cublasLtMatrixLayoutDestroy(Lay*l){memset(l,0xee,sizeof*l);free(l);return 0;}
static int lsz(int a){return a<2||a==5?4:8;}
int cublasLtMatrixLayoutSetAttribute(Lay*l,int a,const void*b,size_t n){if(n!=lsz(a))return 7;if(a==5)l->batch=*(int*)b;if(a==6)l->stride=*(int64_t*)b;return 0;}
int cublasLtMatrixLayoutGetAttribute(Lay*l,int a,void*b,size_t n,size_t*w){*w=lsz(a);if(!n)return 0;switch(a){case 0:*(unsigned*)b=l->type;break;case 2:*(uint64_t*)b=l->rows;break;case 3:*(uint64_t*)b=l->cols;break;case 4:*(int64_t*)b=l->ld;break;case 5:*(int*)b=l->batch;break;case 6:*(int64_t*)b=l->stride;break;}return 0;}
int cublasLtMatmulPreferenceCreate(Pref**p){*p=calloc(1,sizeof(Pref));(*p)->mask=7;return 0;}
int cublasLtMatmulPreferenceDestroy(Pref*p){free(p);return 0;}
static int psz(int a){return a==1||a==12?8:4;}
int cublasLtMatmulPreferenceSetAttribute(Pref*p,int a,const void*b,size_t n){if(n!=psz(a))return 7;if(a==1)p->ws=*(uint64_t*)b;if(a==3)p->mask=*(unsigned*)b;if(a>=5&&a<=8)p->al[a-5]=*(unsigned*)b;return 0;}
int cublasLtMatmulPreferenceGetAttribute(Pref*p,int a,void*b,size_t n,size_t*w){*w=psz(a);if(!n)return 0;if(a==1)*(uint64_t*)b=p->ws;if(a==3)*(unsigned*)b=p->mask;if(a>=5&&a<=8)*(unsigned*)b=p->al[a-5];return 0;}
static int asz(int a){return a>=7?2:4;}
static void* af(Algo*a,int i){void*f[]={&a->id,&a->tile,&a->splitk,&a->red,&a->swz,&a->custom,&a->stages,&a->inner,&a->cluster};return f[i];}
int cublasLtMatmulAlgoConfigSetAttribute(Algo*a,int i,const void*b,size_t n){if(n!=asz(i)||i==0)return 7;memcpy(af(a,i),b,n);return 0;}
int cublasLtMatmulAlgoConfigGetAttribute(Algo*a,int i,void*b,size_t n,size_t*w){if(i<0||i>8)return 7;*w=asz(i);if(!n)return 0;memcpy(b,af(a,i),n);return 0;}
int cublasLtMatmulAlgoCapGetAttribute(Algo*a,int i,void*b,size_t n,size_t*w){if(i>=16&&i<=19){*w=4;*(unsigned*)b=a->id==4?8:a->id==5?128:2;return 0;}return 7;}
int cublasLtMatmulAlgoInit(void*h,int c,int s,int at,int bt,int ct,int dt,int id,Algo*a){if(id>66)return 15;memset(a,0,64);a->id=id;return 0;}
static size_t need(Algo*a){return a->splitk>1? (size_t)a->splitk<<20:0;}
int cublasLtMatmulAlgoCheck(void*h,Desc*d,Lay*A,Lay*B,Lay*C,Lay*D,Algo*a,Res*r){if(a->tile>600)return 15; if(d->epi==0xeeeeeeee){fprintf(stderr,"use after free\n");abort();} memset(r,0,96);r->algo=*a;r->ws=need(a);r->waves=1;return 0;}
int cublasLtMatmulAlgoGetIds(void*h,int c,int s,int at,int bt,int ct,int dt,int n,int*ids,int*ret){int k=n<5?n:5;for(int i=0;i<k;i++)ids[i]=i+1;*ret=k;return 0;}
int cublasLtMatmulAlgoGetHeuristic(void*h,Desc*d,Lay*A,Lay*B,Lay*C,Lay*D,Pref*p,int n,Res*r,int*ret){
 if(getenv("FAKE_HEUR")) return atoi(getenv("FAKE_HEUR"));
 int k=0; for(int i=1;i<=6&&k<n;i++){int id=getenv("FAKE_SPLITS")&&i<4?(i+1)%3+1:i;Algo a;memset(&a,0,64);a.id=id;a.tile=10+id;a.stages=3;a.splitk=id==3?2:id==6?4:1;a.red=a.splitk>1?(id==3?2:1):0;
  if(need(&a)>p->ws||(a.red&&!(a.red&p->mask)))continue; if(id==4&&p->al[0]<8)continue; if(id==5&&p->al[0]<128)continue; memset(&r[k],0,96);r[k].algo=a;r[k].ws=need(&a);k++;} *ret=k;return k?0:15;}
int cublasLtMatmul(void**h,Desc*d,const void*al,const void*A,Lay*la,const void*B,Lay*lb,const void*be,const void*C,Lay*lc,void*D,Lay*ld,Algo*a,void*ws,size_t wn,void*s){
 note(D,s,ws,0); if(*h!=context())return 14;
 if(d->epi==0xeeeeeeee||la->type==0xeeeeeeee){fprintf(stderr,"use after free\n");abort();}
 if(a&&(need(a)>wn||(wn&&!ws)))return 7;
 if(a&&a->id==2&&getenv("FAKE_BREAK"))return 13;
 if(a&&need(a)){((volatile char*)ws)[0]=1;((volatile char*)ws)[need(a)-1]=1;}
 int64_t m=ld->rows,n=ld->cols,k=d->ta?la->rows:la->cols; int64_t kb=d->tb?lb->cols:lb->rows; if(k!=kb||(d->ta?la->cols:la->rows)!=m||(d->tb?lb->rows:lb->cols)!=n){fprintf(stderr,"shape mismatch\n");return 7;}
 if((d->epi&4)&&!d->bias)return 7;
 for(int b=0;b<ld->batch;b++)gemm(d->ta,d->tb,m,n,k,scal(d->scale,al),(char*)A+b*la->stride*sz(la->type),la->type,la->ld,(char*)B+b*lb->stride*sz(lb->type),lb->type,lb->ld,scal(d->scale,be),(char*)C+b*lc->stride*sz(lc->type),lc->type,lc->ld,(char*)D+b*ld->stride*sz(ld->type),ld->type,ld->ld,d->epi&~1u,(void*)d->bias);
 if(a&&a->id==6&&!getenv("FAKE_RIGHT")){st_(ld->type,D,0,12345);} /* a wrong kernel */
 return 0;}
